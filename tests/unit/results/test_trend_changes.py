"""A series says what changed: the model, its version, or the benchmark."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.aggregates.difference import paired_difference
from socratic_bench.domain.aggregates.level_difference import minimal_detectable_change
from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.results.trends.changes import change_finding
from socratic_bench.results.trends.timeseries import ModelSeries, timeseries
from socratic_bench.scoring.exchange import Status
from tests.contract.store.facts import a_response, a_score, record_unleased
from tests.dashboard.seeding import MONDAY, experiment
from tests.unit.domain.aggregates.written_scores import tally, vector_sums

MODEL = "hosted/tutor"
WEEK = timedelta(weeks=1)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


async def measure(
    store: MemoryStore, week: int, score: float, *, version: str = "v1", prompt: str | None = None
) -> Experiment:
    """An experiment in which the tutor scores about `score`, with a little noise per run."""
    planned = experiment(
        [TutorModel(id=MODEL)], occasion=f"{week}", created_at=MONDAY + week * WEEK
    )
    if prompt is not None:
        manifest = planned.manifest.model_copy(update={"system_prompt": prompt})
        planned = Experiment(
            manifest=manifest, occasion=planned.occasion, created_at=planned.created_at
        )
    await store.register(planned)
    rng = random.Random(week)
    runs = list(planned.runs())
    await record_unleased(
        store, [a_response(run).model_copy(update={"model_version": version}) for run in runs]
    )
    await store.fold(
        [
            ScoredResponse(
                run=run,
                turn=1,
                last_turn=True,
                profile=planned.manifest.profile,
                status=Status.OK,
                vectors={},
                overall=min(1.0, max(0.0, score + rng.gauss(0, 0.03))),
            )
            for run in runs
        ],
        (),
    )
    return planned


async def series(store: MemoryStore) -> ModelSeries:
    [found] = (await timeseries(store, MODEL)).models
    return found


async def test_a_rise_over_the_weeks_is_a_trend_with_its_slope(store: MemoryStore) -> None:
    for week in range(6):
        await measure(store, week, 0.5 + 0.05 * week)

    [trend] = (await series(store)).trends

    assert trend.is_real
    assert trend.points == 6
    assert trend.slope_per_week == pytest.approx(0.05, abs=0.01)
    assert (trend.since, trend.until) == (MONDAY, MONDAY + 5 * WEEK)


async def test_no_trend_crosses_a_change_of_the_benchmark_and_the_point_says_what_changed(
    store: MemoryStore,
) -> None:
    for week in range(3):
        await measure(store, week, 0.5 + 0.05 * week)
    for week in range(3, 6):
        await measure(store, week, 0.5 + 0.05 * week, prompt="Ask.")

    found = await series(store)

    assert found.trends == ()
    assert [point.benchmark_changed for point in found.points] == [
        *[()] * 3,
        ("prompt or parameters",),
        *[()] * 2,
    ]
    assert [point.change is None for point in found.points] == [True, *[False] * 2] * 2


async def test_a_point_says_what_changed_since_the_one_before(store: MemoryStore) -> None:
    for week, score in enumerate((0.5, 0.5, 0.8)):
        await measure(store, week, score)

    first, second, third = (await series(store)).points

    assert first.change is None
    assert second.change is not None
    assert third.change is not None
    assert (second.change.is_real, third.change.is_real) == (False, True)
    assert third.change.difference == pytest.approx(0.3, abs=0.02)


async def test_points_before_and_after_a_new_version_of_the_model_are_compared(
    store: MemoryStore,
) -> None:
    for week in range(3):
        await measure(store, week, 0.6)
    changed = await measure(store, 3, 0.4, version="v2")
    await measure(store, 4, 0.4, version="v2")

    found = await series(store)

    [change] = found.version_changes
    assert change.experiment_id == changed.experiment_id
    assert (change.before, change.after) == (("v1",), ("v2",))
    assert (change.points_before, change.points_after) == (3, 2)
    assert change.is_real
    assert change.difference == pytest.approx(-0.2, abs=0.02)
    assert [point.model_versions for point in found.points] == [("v1",)] * 3 + [("v2",)] * 2


async def test_a_step_is_a_change_point_with_the_dates_around_it(store: MemoryStore) -> None:
    planned = [await measure(store, week, 0.7 if week < 6 else 0.5) for week in range(11)]

    [point] = (await series(store)).change_points

    assert point.is_real
    assert point.experiment_id == planned[6].experiment_id
    assert (point.last_before, point.first_after) == (MONDAY + 5 * WEEK, MONDAY + 6 * WEEK)
    assert point.earliest <= point.last_before < point.first_after <= point.latest
    assert (point.points_before, point.points_after) == (6, 5)
    assert point.difference == pytest.approx(-0.2, abs=0.01)
    assert point.finding.startswith(
        "Falls by 0.20 between 2026-04-06 and 2026-04-13 (95 % between 2026-04-06 and 2026-04-13), "
        "more than chance explains (p = 0.00"
    )
    assert point.finding.endswith("6 before and 5 after).")


async def test_no_change_point_crosses_a_change_of_the_benchmark(store: MemoryStore) -> None:
    for week in range(15):
        await measure(store, week, 0.7 if week < 8 else 0.5, prompt="Ask." if week >= 8 else None)

    [point] = (await series(store)).change_points

    assert (point.since, point.until) == (MONDAY, MONDAY + 7 * WEEK)
    assert not point.is_real
    assert point.finding.startswith("No clear change point: chance may explain the largest step")


async def test_the_points_before_and_after_a_named_date_are_compared(store: MemoryStore) -> None:
    for week in range(7):
        await measure(store, week, 0.7 if week < 4 else 0.6)

    [found] = (await timeseries(store, MODEL, changed=MONDAY + 4 * WEEK)).models

    difference = found.date_difference
    assert difference is not None
    assert (difference.points_before, difference.points_after) == (4, 3)
    assert difference.difference == pytest.approx(-0.1, abs=0.01)
    assert difference.is_real
    assert difference.finding.startswith("0.10 less after 2026-03-30 09:30 UTC than before (95 % ")
    assert difference.finding.endswith(
        "more than chance explains (p < 0.001, 4 points before and 3 after)."
    )
    assert (await series(store)).date_difference is None


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (6 * WEEK, "6 joined before 2026-04-13 09:30 UTC and 1 after: a comparison needs 2 points"),
        (9 * WEEK, "No points that join stand on both sides of 2026-05-04 09:30 UTC"),
    ],
)
async def test_a_date_without_two_points_on_each_side_says_so(
    store: MemoryStore, changed: timedelta, told: str
) -> None:
    for week in range(7):
        await measure(store, week, 0.7)

    [found] = (await timeseries(store, MODEL, changed=MONDAY + changed)).models

    assert found.date_difference is not None
    assert found.date_difference.finding.startswith(told)
    assert found.date_difference.difference is None
    assert not found.date_difference.is_real


async def test_points_beyond_a_change_of_the_benchmark_stand_on_no_side(store: MemoryStore) -> None:
    for week in range(8):
        await measure(store, week, 0.7, prompt="Ask." if week < 3 else None)

    [found] = (await timeseries(store, MODEL, changed=MONDAY + 5 * WEEK)).models

    assert found.date_difference is not None
    assert (found.date_difference.points_before, found.date_difference.points_after) == (2, 3)


async def test_a_series_says_which_step_it_would_show(store: MemoryStore) -> None:
    for week in range(8):
        await measure(store, week, 0.7, prompt="Ask." if week < 3 else None)

    found = await series(store)

    [least] = found.detectable_changes
    levels = [point.overall_score or 0.0 for point in found.points[3:]]
    assert least.least == minimal_detectable_change(levels)
    assert (least.since, least.until, least.points) == (MONDAY + 3 * WEEK, MONDAY + 7 * WEEK, 5)
    assert least.finding.startswith(f"5 points like these show a step of {least.least:.2f} between")


async def test_rescored_experiments_join_those_whose_own_profile_is_the_new_one(
    store: MemoryStore,
) -> None:
    for week, own in enumerate(("socratic-v1", "socratic-v1", "socratic-v2")):
        planned = experiment([TutorModel(id=MODEL)], occasion=f"{week}")
        manifest = planned.manifest.model_copy(update={"profile": own})
        planned = Experiment(
            manifest=manifest, occasion=planned.occasion, created_at=MONDAY + week * WEEK
        )
        await store.register(planned)
        for profile in {own, "socratic-v2"}:
            await store.fold([a_score(run, profile=profile) for run in planned.runs()], [])

    [own_series] = (await timeseries(store, MODEL)).models
    [new_series] = (await timeseries(store, MODEL, "socratic-v2")).models

    assert [point.joins for point in own_series.points] == [False, True, False]
    assert own_series.points[2].benchmark_changed == ("profile",)
    assert [point.joins for point in new_series.points] == [False, True, True]


async def test_a_point_of_copies_alone_is_no_point_of_a_test(store: MemoryStore) -> None:
    for week in range(8):
        planned = experiment(
            [TutorModel(id=MODEL)], occasion=f"{week}", created_at=MONDAY + week * WEEK
        )
        await store.register(planned)
        reused = {"note.reused": 1} if week == 7 else {}
        for run in planned.runs():
            counts = {"note.answers": 1, **reused}
            await store.fold([a_score(run, overall=0.5 + week / 100, counts=counts)], [])

    found = await series(store)

    assert found.change_points == ()
    assert [trend.points for trend in found.trends] == [7]


async def test_other_scenarios_are_named_as_what_changed(store: MemoryStore) -> None:
    await measure(store, 0, 0.5)
    planned = experiment([TutorModel(id=MODEL)], occasion="other", created_at=MONDAY + WEEK)
    scenarios = (Scenario(id="new", dimension="student", prompt="New?"),)
    manifest = planned.manifest.model_copy(update={"scenarios": scenarios})
    await store.register(Experiment(manifest=manifest, created_at=planned.created_at))

    _, second = (await series(store)).points

    assert second.benchmark_changed == ("scenarios",)
    assert second.change is None


async def test_a_finding_is_told_with_its_size_direction_and_test(store: MemoryStore) -> None:
    for week in range(6):
        rise = 0.05 * week
        await measure(store, week, 0.3 + rise, version="v1" if week < 3 else "v2")

    found = await series(store)

    [trend] = found.trends
    assert trend.finding.startswith("Rises by 0.0")
    assert trend.finding.endswith("a week, more than chance explains (p = 0.003, 6 points).")
    [change] = found.version_changes
    assert change.finding.startswith("These experiments differ: 0.1")
    assert "more after than before (95 % +0.1" in change.finding
    assert change.finding.endswith("(p < 0.001, 3 before and 3 after, paired by scenario).")


def test_equal_scores_before_and_after_a_change_are_no_proof_of_equality() -> None:
    scores = vector_sums({f"s{place}": RunScores({1: tally(0.5)}) for place in range(12)})
    difference = paired_difference(scores, scores)

    told = change_finding(difference, 1.0, (3, 2), is_real=False)

    # t of 11 degrees times the root of beta of 12 scenarios times 0.5.
    assert "no proof of equality: the true difference may be up to 0.12 either way" in told


async def test_what_chance_may_explain_is_told_as_such(store: MemoryStore) -> None:
    for week in range(5):
        await measure(store, week, 0.5, version="v1" if week < 3 else "v2")

    found = await series(store)

    assert found.trends[0].finding.startswith("No clear rise or fall: chance may explain")
    assert "which may be chance" in found.version_changes[0].finding
