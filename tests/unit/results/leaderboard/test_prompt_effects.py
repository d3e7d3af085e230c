"""The effect of prompts over the models of a matrix, paired by scenario and model."""

from __future__ import annotations

import csv
import io

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.results.compare.model_difference import model_difference
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.leaderboard.text_formats import (
    comparison_csv,
    comparison_latex,
    comparison_markdown,
)
from socratic_bench.scoring.exchange import Status
from tests.dashboard.seeding import MONDAY

SCENARIOS = tuple(
    Scenario(id=f"s{number}", dimension="student", prompt=f"{number}?") for number in range(6)
)


async def filled(store: MemoryStore, models: list[str], lost: frozenset[str] = frozenset()) -> None:
    """Store a matrix of two prompts: verbosity falls under `tell`, in odd scenarios twice as far.

    `lost` are the scenarios without a score of the last model under `tell`.
    """
    cells = [
        TutorModel(id=id_).under(prompt, prompt) for id_ in models for prompt in ("tell", "ask")
    ]
    manifest = Manifest(models=tuple(cells), scenarios=SCENARIOS, repeats=1)
    planned = Experiment(manifest=manifest, created_at=MONDAY)
    await store.register(planned)
    scores = []
    for run in planned.runs():
        odd, tells = int(run.scenario_id[1:]) % 2, run.model_id.endswith("@tell")
        if tells and run.model_id.startswith(models[-1]) and run.scenario_id in lost:
            continue
        low = 0.3 * (1 + odd) if tells else 0.0
        vectors: dict[str, float | None] = {
            "verbosity": 0.9 - low - 0.1 * models.index(run.model_id.partition("@")[0]),
            "exploratory": 1.0,
            "interrogative": 1.0,
        }
        scores.append(
            ScoredResponse(
                run=run,
                turn=1,
                last_turn=True,
                profile="socratic-v1",
                status=Status.OK,
                vectors=vectors,
                overall=sum(each or 0.0 for each in vectors.values()) / 3,
            )
        )
    await store.fold(scores, ())


async def test_the_effect_of_a_prompt_on_one_model_is_the_difference_of_both_rows(
    store: MemoryStore,
):
    await filled(store, ["openai/a"])
    tell, ask = (await model_comparison(store)).prompts
    compared = await model_difference(store, "openai/a@ask", "openai/a@tell")
    overall = compared.figures[0]
    assert (ask.prompt, ask.difference, ask.interval) == (
        "ask",
        overall.difference,
        overall.interval,
    )
    assert ask.p_value == compared.p_value
    assert (tell.prompt, tell.difference, tell.interval, tell.is_real) == (
        "tell",
        None,
        None,
        False,
    )


async def test_every_format_has_the_effect_of_each_prompt(store: MemoryStore):
    await filled(store, ["openai/a", "openai/b"])
    comparison = await model_comparison(store)
    tell, ask = comparison.prompts
    for text in (comparison_markdown(comparison), comparison_latex(comparison)):
        assert "less tell" in text
        assert "Over 2 models and 6 scenarios with a score under each prompt" in text
        assert f"{ask.difference:+.2f}" in text
    rows = list(csv.DictReader(io.StringIO(comparison_csv(comparison))))
    assert {(row["model_id"][-3:], row["prompt"], row["prompt_difference"]) for row in rows} == {
        ("ask", "ask", str(ask.difference)),
        ("ell", "tell", ""),
    }
    assert {row["prompt_overall"] for row in rows} == {str(tell.overall), str(ask.overall)}


async def test_models_weigh_alike_and_only_what_all_prompts_answered_counts(store: MemoryStore):
    await filled(store, ["openai/a", "openai/b"], frozenset({"s1", "s3"}))
    tell, ask = (await model_comparison(store)).prompts
    # openai/a: 0.1 and 0.2 in turn; openai/b: the same without s1 and s3. Without pairing by model
    # the lower openai/b would weigh less under `tell`.
    assert ask.difference == pytest.approx(0.15)
    assert (ask.models, ask.scenarios) == (2, 6)
    assert ask.overall - tell.overall == pytest.approx(0.15)


async def test_reference_tutors_count_only_without_other_models(store: MemoryStore):
    await filled(store, ["openai/a", "reference/socratic"])
    assert (await model_comparison(store)).prompts[1].models == 1


async def test_models_without_prompts_of_a_matrix_have_no_effects(store: MemoryStore):
    await filled(store, ["openai/a"])
    answer = (await model_comparison(store)).model_dump(mode="json")
    assert [each["prompt"] for each in answer["prompts"]] == ["tell", "ask"]
    other = Manifest(models=(TutorModel(id="openai/c"),), scenarios=SCENARIOS, repeats=1)
    alone = Experiment(manifest=other, occasion="alone", created_at=MONDAY)
    await store.register(alone)
    comparison = await model_comparison(store, alone.experiment_id)
    assert "prompts" not in comparison.model_dump(mode="json")
