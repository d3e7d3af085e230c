"""The constant reply: what a tutor scores that says the same to everybody."""

from __future__ import annotations

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.results.leaderboard.baseline import CONSTANT_REPLY, baseline_of
from socratic_bench.results.leaderboard.leaderboard import ModelComparison, model_comparison
from socratic_bench.results.leaderboard.text_formats import comparison_csv, comparison_markdown
from socratic_bench.scoring.score import score
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors


def manifest_of(*scenarios: Scenario, profile: str = "socratic-v1") -> Manifest:
    model = TutorModel(id="reference/socratic")
    return Manifest(models=(model,), scenarios=scenarios, profile=profile)


def test_it_is_the_mean_of_the_scores_of_one_text() -> None:
    messages = ("I added 12 and 5 and got 18.", "What matters to everyone in this situation?")
    scenarios = [
        Scenario(id=f"one-{number}", dimension="student", prompt=message)
        for number, message in enumerate(messages)
    ]

    found = baseline_of(manifest_of(*scenarios), "socratic-v2")

    overall = [
        score(
            CONSTANT_REPLY, dimension="student", student_message=message, profile="socratic-v2"
        ).overall
        for message in messages
    ]
    assert None not in overall
    assert overall[0] != overall[1]
    expected = sum(each or 0.0 for each in overall) / 2
    assert found.all["overall"] == pytest.approx(expected)
    assert found.dimensions["student"]["overall"] == pytest.approx(expected)


def test_every_message_of_a_conversation_is_answered() -> None:
    scenario = Scenario(
        id="two", dimension="student", prompt="I am lost.", follow_ups=("I am still lost.",)
    )

    assert baseline_of(manifest_of(scenario), "socratic-v1").responses == 2


async def test_a_table_has_it_beside_its_models(store: MemoryStore) -> None:
    await seed(store, experiment(tutors(4)))

    comparison = await model_comparison(store)

    baseline = comparison.baseline
    assert baseline is not None
    assert baseline.kind == "baseline"
    assert baseline.rank is None
    assert baseline.overall_score == pytest.approx(0.82, abs=0.01)
    assert baseline not in comparison.models
    assert "constant reply" in comparison_markdown(comparison)
    assert CONSTANT_REPLY in comparison_markdown(comparison)
    assert baseline.model_id not in comparison_csv(comparison)
    assert ModelComparison.model_validate_json(comparison.model_dump_json()) == comparison


async def test_a_table_of_different_conditions_or_none_has_no_baseline(store: MemoryStore) -> None:
    assert (await model_comparison(store)).baseline is None

    await seed(store, experiment(tutors(2)))
    other = experiment(tutors(3)[2:], created_at=MONDAY)
    manifest = other.manifest.model_copy(update={"system_prompt": "Ask."})
    await seed(store, type(other)(manifest=manifest, created_at=MONDAY))

    comparison = await model_comparison(store, "all")
    assert comparison.mixed_conditions
    assert comparison.baseline is None
