"""`run` with a grader: each text is graded once, and both columns stand in every result."""

from __future__ import annotations

import asyncio
import csv
import io
import json

import pytest

from tests.e2e.command import Terminal
from tests.servers.providers.grader import grader

TUTORS = ["reference/socratic", "reference/lecturer"]
COST = (400 + 4 * 2) / 1e6
"""USD for one grading."""


class Bench:
    """A terminal whose benchmarks have a grader."""

    def __init__(self, terminal: Terminal, model) -> None:
        self.terminal = terminal
        self.model = model

    async def said(self, *words) -> str:
        done = await asyncio.to_thread(self.terminal.run, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def configured(self, repeats=2, **changes):
        config = {"models": TUTORS, "repeats": repeats}
        config |= {"use_llm_exploratory": {"model": self.model.model}, **changes}
        return self.terminal.write("b.json", json.dumps(config))

    async def run(self, *options: str, **changes):
        return json.loads(await self.said("run", self.configured(**changes), "--json", *options))


@pytest.fixture
async def model():
    async with grader() as model:
        yield model


@pytest.fixture
def bench(terminal, model):
    return Bench(terminal, model)


async def test_a_text_is_graded_once_across_repeats_restarts_and_experiments(bench, model):
    estimate = await bench.run("--estimate")
    assert (estimate["grader"]["calls"], estimate["total"]["calls"]) == (60, 120)
    assert estimate["grader"]["cost_usd"]["likely"] > 0

    first = await bench.run()
    texts = len(set(model.asked))
    assert (len(model.asked), first["model_calls"]) == (texts, 60 + texts)
    assert first["spending"]["paid_usd"] == pytest.approx(texts * COST)
    assert (await bench.run())["model_calls"] == 0

    more = await bench.run(repeats=3)
    assert (more["reused"], len(model.asked)) == (60, len(set(model.asked)))
    assert more["model_calls"] == 30 + len(model.asked) - texts
    assert "agree with their rows" in (await asyncio.to_thread(bench.terminal.run, "verify")).stderr


async def test_both_columns_stand_in_the_leaderboard_and_in_the_export(bench):
    done = await bench.run()
    table = list(csv.DictReader(io.StringIO(await bench.said("leaderboard", "--format", "csv"))))
    assert {row["profile"] for row in table} == {"socratic-v1-llm"}
    lines = (await bench.said("export", done["experiment_id"], "--format", "jsonl")).splitlines()
    exported = [json.loads(line) for line in lines]
    for row in table:
        own = [each for each in exported if each["model_id"] == row["model_id"]]
        assert len(own) == 30
        for column in ("exploratory", "exploratory_heuristic", "overall"):
            mean = sum(each[column] for each in own) / len(own)
            assert float(row[column]) == pytest.approx(mean, abs=1e-6)
    assert any(each["exploratory"] != each["exploratory_heuristic"] for each in exported)


async def test_the_comparison_of_both_profiles_says_what_the_grades_cost(bench, model):
    done = await bench.run(repeats=1)
    await bench.said("rescore", done["experiment_id"], "--profile", "socratic-v1")
    profiles = ("socratic-v1", "socratic-v1-llm")
    compared = ("compare-profiles", *profiles, "--experiment", done["experiment_id"])
    found = json.loads(await bench.said(*compared, "--format", "json"))
    texts = len(set(model.asked))
    assert (found["responses"], found["first_cost"]["calls"]) == (30, 0)
    assert found["second_cost"]["calls"] == texts
    assert found["second_cost"]["total_cost_usd"] == pytest.approx(texts * COST)
    table = " ".join((await bench.said(*compared)).split())
    assert "socratic-v1 calls no model and costs nothing." in table
    assert f"socratic-v1-llm took {texts} gradings by a model: $0." in table


async def test_a_grader_that_never_gives_a_grade_lowers_coverage_and_makes_no_score(terminal):
    async with grader(lambda text: "I would say 7, since " + text[:5]) as model:
        bench = Bench(terminal, model)
        path = bench.configured(repeats=1, models=["reference/socratic"])
        run = await asyncio.to_thread(terminal.run, "run", path, "--json")
        assert run.returncode == 1, "a model has no score"
        assert "vllm/grader gave no grade for 15 responses" in run.stderr
        done = json.loads(run.stdout)
        assert (done["done"], done["failed"]) == (15, 0)
        [row] = json.loads(await bench.said("leaderboard", "--format", "json"))["models"]
        assert (row["coverage"], row["overall_score"]) == (0.0, None)
        lines = (await bench.said("export", done["experiment_id"], "--format", "jsonl")).split("\n")
        exported = [json.loads(line) for line in lines if line]
        assert {each["exploratory"] for each in exported} == {None}
        assert all(each["exploratory_heuristic"] is not None for each in exported)


async def test_a_grade_of_another_endpoint_is_not_taken(bench, terminal):
    await bench.run(repeats=1)
    async with grader(lambda _: "10") as hostile:
        await Bench(terminal, hostile).run(repeats=1)
        assert len(hostile.asked) == len(set(bench.model.asked))


async def test_the_command_names_what_is_wrong_with_a_grader(bench, terminal):
    for grading, profile, said in (
        ({"model": "reference/socratic"}, "socratic-v1", "cannot grade"),
        ({"model": bench.model.model}, "socratic-v2", "has no vector exploratory"),
        (None, "socratic-v1-llm", "needs a model that grades: use_llm_exploratory"),
        ({}, "socratic-v1", "use_llm_exploratory.model: is missing"),
    ):
        config = {"models": TUTORS, "use_llm_exploratory": grading, "profile": profile}
        path = terminal.write("wrong.json", json.dumps(config))
        done = await asyncio.to_thread(terminal.run, "run", path)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
