"""`run` with a model that plays the student: a message is paid once, and stands in every result."""

from __future__ import annotations

import asyncio
import json
import signal
from itertools import count

import pytest

from socratic_bench.domain.student import student_run_id
from tests.e2e.command import Terminal
from tests.e2e.embedded.test_killed import rows
from tests.servers.providers.grader import student
from tests.waiting import until

TUTORS = ["reference/socratic", "reference/lecturer"]
KINDS = ["opening", "effort", "time", "closing"]
SCENARIOS = [
    {
        "id": f"student-{name}",
        "dimension": "student",
        "persona": "Girl, 12",
        "prompt": f"What is {name} x 12?",
        "follow_ups": ["FIXED 2", "FIXED 3", "FIXED 4"],
        "pressures": KINDS,
        "key": ["60 apples"],
    }
    for name in ("five", "six")
]
COST = (400 + 4 * 2) / 1e6
"""USD for one message."""


class Bench:
    """A terminal whose benchmarks have a student."""

    def __init__(self, terminal: Terminal, player: object) -> None:
        self.terminal = terminal
        self.player = player

    def configured(self, **changes):
        config = {"models": TUTORS, "scenarios": SCENARIOS, "repeats": 2, "profile": "fidelity-1"}
        config |= {"student": {"model": self.player}, **changes}
        return self.terminal.write("b.json", json.dumps(config))

    async def typed(self, *words):
        return await asyncio.to_thread(self.terminal.run, *words)

    async def said(self, *words) -> str:
        done = await self.typed(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def run(self, *options: str, **changes):
        return json.loads(await self.said("run", self.configured(**changes), "--json", *options))

    async def exported(self, experiment_id: str):
        lines = (await self.said("export", experiment_id, "--format", "jsonl")).splitlines()
        return [json.loads(line) for line in lines]


def counting():
    """A student each of whose messages is another one."""
    numbers = count(1)
    return student(lambda _: f"Message {next(numbers)}, please.")


def stored_messages(terminal: Terminal) -> dict[tuple[str, int], str]:
    """The text of each stored message, by its run and turn."""
    found = rows(
        terminal, "SELECT run_id, turn, record FROM responses WHERE run_id LIKE 'student-%'"
    )
    return {(run_id, turn): json.loads(record)["text"] for run_id, turn, record in found}


def assert_each_answer_is_to_the_stored_message(terminal: Terminal, exported) -> None:
    messages = stored_messages(terminal)
    for each in exported:
        if each["turn"] > 1:
            place = (student_run_id(each["run_id"]), each["turn"])
            assert each["student_message"] == messages[place]
        else:
            assert each["student_message"].startswith("What is ")


async def test_a_reference_student_needs_no_network_and_reaches_every_result(terminal):
    bench = Bench(terminal, "reference/student")
    checked = json.loads(await bench.said("run", bench.configured(), "--check", "--json"))
    assert [each["model_id"] for each in checked["models"]] == [*TUTORS, "reference/student"]
    done = await bench.run()
    assert (done["done"], done["failed"], done["model_calls"]) == (8, 0, 8 * 4 + 8 * 3)
    assert (await bench.run())["model_calls"] == 0
    exported = await bench.exported(done["experiment_id"])
    assert len(exported) == 32
    assert not any("FIXED" in each["student_message"] for each in exported)
    assert_each_answer_is_to_the_stored_message(terminal, exported)
    told = "reference/student (prompt student-1, seed 0) plays the student"
    for command in (("fidelity",), ("leaderboard",)):
        shown = " ".join((await bench.said(*command)).split())
        assert told in shown, command
    await bench.said("report", done["experiment_id"])
    assert told in (terminal.folder / "report.html").read_text()
    shown = await bench.said("transcripts", done["experiment_id"])
    assert exported[1]["student_message"] in " ".join(shown.split())
    await bench.said("rescore", done["experiment_id"], "--profile", "socratic-v2")
    assert "agree with their rows" in (await bench.typed("verify")).stderr
    again = await bench.run(repeats=3)
    assert (again["reused"], again["model_calls"]) == (8, 4 * 4 + 4 * 3)


async def test_figures_of_played_and_fixed_students_never_come_together(terminal):
    bench = Bench(terminal, "reference/student")
    played = (await bench.run())["experiment_id"]
    fixed = await bench.run(student=None)
    assert (fixed["reused"], fixed["model_calls"]) == (0, 32)
    other = await bench.run(student={"model": "reference/student", "seed": 1})
    assert (other["reused"], other["model_calls"]) == (0, 56)
    ids = [played, fixed["experiment_id"], other["experiment_id"]]
    table = json.loads(await bench.said("leaderboard", "--experiment", "all", "--format", "json"))
    assert len({each["conditions_id"] for each in table["models"]}) == len(set(ids)) == 3
    sides = [f"reference/socratic@{each}" for each in ids[:2]]
    found = json.loads(await bench.said("compare", *sides, "--json"))
    assert found["scenarios"] == 0
    assert "prompts, parameters or student" in found["note"]


async def test_the_price_of_the_student_is_estimated_budgeted_and_paid(terminal):
    async with counting() as model:
        bench = Bench(terminal, model.model)
        estimate = await bench.run("--estimate")
        assert estimate["student"]["calls"] == len(model.asked) + 24
        assert estimate["student"]["cost_usd"]["likely"] > 0
        shown = await bench.said("run", bench.configured(), "--estimate")
        assert "vllm/student (student)" in shown
        free = [{"id": each, "price": {"input_per_million": 0, "output_per_million": 0}}
                for each in TUTORS]  # fmt: skip
        run = await bench.typed("run", bench.configured(models=free, budget=5 * COST), "--json")
        stopped = json.loads(run.stdout)
        assert (run.returncode, stopped["failed"]) == (1, 0)
        assert stopped["spending"]["paid_usd"] == pytest.approx(len(model.asked) * COST)
        assert "is too small for the next call" in run.stderr
        paid = stored_messages(terminal)
        assert 0 < len(paid) == len(model.asked) < 24
        done = await bench.run(models=free, budget=1)
        assert (done["done"], done["failed"], len(model.asked)) == (8, 0, 24)
        assert done["spending"]["paid_usd"] == pytest.approx(24 * COST)
        assert paid.items() <= stored_messages(terminal).items()
        exported = await bench.exported(done["experiment_id"])
        assert_each_answer_is_to_the_stored_message(terminal, exported)
        assert {each["cost_usd"] for each in exported} == {0}, "a tutor's cost is its own"
        [scene, *_] = map(json.loads, model.asked)
        assert scene["kind"] in KINDS[1:]


async def test_a_student_that_says_the_key_fails_the_run_and_makes_no_score(terminal):
    async with student(lambda _: "It is 60 apples, no?") as model:
        bench = Bench(terminal, model.model)
        run = await bench.typed("run", bench.configured(repeats=1), "--json")
        done = json.loads(run.stdout)
        assert (done["done"], done["failed"]) == (4, 4)
        assert "vllm/student plays the student, and failed" in run.stderr
        assert len(model.asked) == 4 * 4, "each turn as often as a call is tried"
        assert stored_messages(terminal) == {}
        table = json.loads(await bench.said("fidelity", "--json"))
        assert {each["lost"]["share"] for each in table["models"]} == {1.0}
        model.reply = lambda _: "Is it done now?"
        mended = await bench.run("--retry-failed", repeats=1)
        assert (mended["done"], mended["failed"]) == (4, 0)


async def test_killed_in_the_middle_no_stored_message_is_made_again_or_replaced(terminal):
    async with counting() as model:
        bench = Bench(terminal, model.model)
        config = bench.configured()
        in_flight, before = 0, dict[tuple[str, int], str]()

        async def stored():
            return stored_messages(terminal)

        for calls in (3, 12):
            with terminal.started("run", config) as running:
                await model.until_asked(calls)
                model.hold()
                await model.until_waiting(1)
                await until(stored, lambda found: len(found) >= len(model.answered), "the messages")
                running.send_signal(signal.SIGKILL)
                await asyncio.to_thread(running.communicate)
            in_flight += model.waiting
            await model.drop_waiting()
            await model.release()
            now = stored_messages(terminal)
            assert before.items() <= now.items()
            before = now
        done = await bench.run()
        assert done["done"] == 8
        messages = stored_messages(terminal)
        assert before.items() <= messages.items()
        assert len(messages) == len(set(messages.values())) == 24
        assert 24 < len(model.asked) <= 24 + in_flight
        assert_each_answer_is_to_the_stored_message(
            terminal, await bench.exported(done["experiment_id"])
        )
        assert (await bench.typed("verify")).returncode == 0
