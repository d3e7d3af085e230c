"""Every view of results reads a profile with other weights as any other profile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Manifest,
    TutorModel,
    weighted_name,
)
from socratic_bench.errors import InvalidInput, UnknownProfile
from socratic_bench.planning.rescoring import Rescoring
from socratic_bench.research.agreement import profile_agreement
from socratic_bench.results.cache.pools import KnownPools
from socratic_bench.results.compare.model_difference import model_difference
from socratic_bench.results.experiment_choice import NoScores, common_profiles
from socratic_bench.results.gate.falls import Thresholds
from socratic_bench.results.gate.gate_report import gate_report
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.scenarios import scenario_scores
from socratic_bench.results.trends.timeseries import timeseries
from socratic_bench.scoring import weighted_profile
from socratic_bench.scoring.profiles import profile_named
from tests.contract.store.facts import a_score
from tests.dashboard.seeding import MONDAY, SCENARIOS

ASKS, TELLS = "local/asks", "local/tells"
WEIGHTS = {"student": {"interrogative": 2.0}}
NAME = weighted_name("socratic-v1", WEIGHTS)
VECTORS = {
    ASKS: {"verbosity": 0.5, "exploratory": 0.5, "interrogative": 1.0},
    TELLS: {"verbosity": 0.9, "exploratory": 0.75, "interrogative": 0.0},
}
PLAIN = {ASKS: 2.0 / 3, TELLS: 0.55}
ON_STUDENT = {ASKS: 0.75, TELLS: 0.4125}
OVERALL = {model: (2 * PLAIN[model] + ON_STUDENT[model]) / 3 for model in PLAIN}
"""Of five scenarios in each of three dimensions."""

SENTENCE = f"{NAME} is socratic-v1 with the weights student: interrogative 2; all others stay."


def planned(*, occasion: str | None = None, weighed: bool = True, days: int = 0) -> Experiment:
    manifest = Manifest(
        models=(TutorModel(id=ASKS), TutorModel(id=TELLS)),
        scenarios=SCENARIOS,
        repeats=2,
        weightings={NAME: WEIGHTS} if weighed else {},
    )
    created_at = MONDAY + timedelta(days=days)
    return Experiment(manifest=manifest, occasion=occasion, created_at=created_at)


async def scored(store: MemoryStore, experiment: Experiment) -> Experiment:
    await store.register(experiment)
    scores = [
        a_score(run, overall=PLAIN[run.model_id]).model_copy(
            update={"vectors": VECTORS[run.model_id]}
        )
        for run in experiment.runs()
    ]
    await store.fold(scores, ())
    await store.complete(experiment.experiment_id, experiment.created_at)
    return experiment


async def test_the_leaderboard_is_weighed_and_names_the_weights(store: MemoryStore) -> None:
    experiment = await scored(store, planned())

    plain = await model_comparison(store)
    weighed = await model_comparison(store, experiment.experiment_id, NAME)

    assert plain.profiles == weighed.profiles == ("socratic-v1", NAME)
    assert [row.overall_score for row in plain.models] == pytest.approx([*PLAIN.values()])
    assert (weighed.profile, weighed.vectors) == (NAME, plain.vectors)
    assert [row.overall_score for row in weighed.models] == pytest.approx([*OVERALL.values()])
    assert [row.dimensions["student"].overall for row in weighed.models] == [0.75, 0.4125]
    assert all(row.confidence_interval for row in weighed.models)
    assert SENTENCE in weighed.notes
    assert not any("not by the profile of the plan" in note for note in weighed.notes)
    assert SENTENCE not in plain.notes
    # A mean of weighted dimensions has the same neighbours under weights that are alike in all.
    assert weighed.models[0].other_weights == plain.models[0].other_weights


async def test_the_pooled_table_is_weighed_before_and_after_it_is_kept(store: MemoryStore) -> None:
    await scored(store, planned())
    await scored(store, planned(occasion="next", weighed=False, days=7))
    known = KnownPools()

    for profile, means in (("socratic-v1", PLAIN), (NAME, OVERALL), (NAME, OVERALL)):
        found = await model_comparison(store, "all", profile, known=known)
        assert [row.total_runs for row in found.models] == [60, 60]
        assert [row.overall_score for row in found.models] == pytest.approx([*means.values()])


async def test_two_models_are_compared_by_the_weights(store: MemoryStore) -> None:
    await scored(store, planned())

    found = await model_difference(store, ASKS, TELLS, profile=NAME)

    assert found.figures[0].difference == pytest.approx(OVERALL[ASKS] - OVERALL[TELLS], abs=1e-6)
    assert found.figures[0].interval is not None
    assert found.profiles == ("socratic-v1", NAME)
    assert any(note.startswith(SENTENCE) and "most that it can be" in note for note in found.notes)
    assert found.variance is not None
    # Equal repeats leave no part between them, under any weights.
    assert found.variance.repeat == 0


async def test_a_gate_checks_the_weighted_scores(store: MemoryStore) -> None:
    before = await scored(store, planned(occasion="main", weighed=False))
    experiment = await scored(store, planned(occasion="change", days=1))
    thresholds = Thresholds(least_overall=0.6, baseline=before.experiment_id, profile=NAME)

    report = await gate_report(store, experiment.experiment_id, thresholds, MONDAY)

    least = {each.model_id: each.passed for each in report.checks if "at least 0.6" in each.name}
    assert least == {ASKS: True, TELLS: False}
    assert [each.value for each in report.checks if "falls" in each.name] == [0, 0]
    assert SENTENCE in report.notes
    assert report.checks[0].value == pytest.approx(OVERALL[ASKS])


async def test_scenarios_trends_and_agreement_are_weighed(store: MemoryStore) -> None:
    experiment = await scored(store, planned())
    id_ = experiment.experiment_id

    table = await scenario_scores(store, experiment, experiment.manifest.models, NAME)
    trends = await timeseries(store, None, NAME)
    agreement = await profile_agreement(store, id_, "socratic-v1", NAME)

    by_id = dict(
        zip((each.scenario_id for each in table.scenarios), table.models[0].scores, strict=True)
    )
    assert by_id["student-1"].overall == 0.75
    assert by_id["ethical-1"].overall == pytest.approx(PLAIN[ASKS], abs=1e-6)
    [asks] = [each for each in trends.models if each.model_id == ASKS]
    assert asks.points[0].overall_score == pytest.approx(OVERALL[ASKS])
    assert (agreement.responses, agreement.only_first, agreement.only_second) == (60, 0, 0)
    assert {round(second, 4) for _, second in agreement.figures[0].points} == {
        0.75,
        0.4125,
        0.6667,
        0.55,
    }


async def test_weights_that_another_experiment_names_are_found(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = await scored(store, planned(occasion="plain", weighed=False))
    await scored(store, planned())
    # As in a process that has read no plan yet.
    monkeypatch.setattr(weighted_profile, "_known", {})

    found = await model_comparison(store, plain.experiment_id, NAME)

    assert found.models[0].overall_score == pytest.approx(OVERALL[ASKS])
    assert await common_profiles(store, [plain.experiment_id]) == ("socratic-v1",)


async def test_unknown_weights_and_a_base_without_scores_are_said(store: MemoryStore) -> None:
    experiment = await scored(store, planned())

    with pytest.raises(UnknownProfile, match="no experiment of this store names them"):
        await model_comparison(store, experiment.experiment_id, "socratic-v1+w-000000000000")
    ruler = weighted_name("socratic-v1-same-ruler", WEIGHTS)
    weighted_profile.remember(ruler, WEIGHTS)
    with pytest.raises(NoScores, match=r"rescore exp-.* --profile socratic-v1-same-ruler$"):
        await model_comparison(store, experiment.experiment_id, ruler)


def test_weights_need_no_rescoring(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="reads the scores of socratic-v1"):
        Rescoring(planned(), NAME, store, None, None, "test")  # type: ignore[arg-type]


def test_a_plan_makes_its_weights_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_profile, "_known", {})

    planned()

    profile = profile_named(NAME)
    assert profile.weights.of("student", profile.vectors) == (1.0, 1.0, 2.0)
    assert profile.weights.of("ethical", profile.vectors) is None
    assert profile.describe() == profile_named("socratic-v1").describe()


def test_weights_under_another_name_than_theirs_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(weighted_profile, "_known", {})
    wrong = "socratic-v1+w-111111111111"

    plan = planned().manifest
    Manifest.model_validate({**plan.model_dump(), "weightings": {wrong: WEIGHTS}})

    assert weighted_profile.known_weights(wrong) is None
