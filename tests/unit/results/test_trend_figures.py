"""A series of any figure: a vector, a turn or the turns kept, tested as the overall score is."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import InvalidInput
from socratic_bench.results.compare.model_difference import model_difference
from socratic_bench.results.experiment_choice import NoScores
from socratic_bench.results.fidelity.fidelity import fidelity
from socratic_bench.results.filters import Filters
from socratic_bench.results.trends.figures import TURNS_KEPT
from socratic_bench.results.trends.timeseries import Timeseries, timeseries
from socratic_bench.scoring.exchange import Status
from tests.contract.store.facts import a_response, record_unleased
from tests.dashboard.pressed_runs import filled
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors
from tests.unit.results.test_trend_changes import WEEK

MODEL = "p/m"
STEADY = ("....", "..LL")
"""Turns kept (3 + 2) / 2 of 3."""

BREAKS = ("LL..", ".LL.")
"""Turns kept (0 + 1) / 2."""


async def pressed(store: MemoryStore, *weeks: tuple[str, ...]) -> list[Experiment]:
    """Store an experiment a week, with these runs of each scenario."""
    return [await filled(store, {MODEL: runs}, week=week) for week, runs in enumerate(weeks)]


async def kept(store: MemoryStore, **asked: Any) -> Timeseries:
    return await timeseries(store, MODEL, figure=TURNS_KEPT, **asked)


async def test_a_point_of_turns_kept_is_that_of_the_fidelity_table(store: MemoryStore) -> None:
    planned = await pressed(store, STEADY, BREAKS, ("....", ".?.."))

    found = await kept(store)

    [series] = found.models
    assert (found.greatest, [point.value for point in series.points]) == (3, [2.5, 0.5, 3])
    for each, point in zip(planned, series.points, strict=True):
        [row] = (await fidelity(store, each.experiment_id)).models
        assert point.value == row.turns_kept
        assert point.confidence_interval == row.turns_kept_interval
        assert point.overall_score == row.kept
        assert point.lost == row.lost


async def test_neighbours_differ_by_the_turns_that_compare_says(store: MemoryStore) -> None:
    first, second = await pressed(store, STEADY, BREAKS)

    [series] = (await kept(store)).models
    beside = await model_difference(
        store, f"{MODEL}@{second.experiment_id}", f"{MODEL}@{first.experiment_id}"
    )

    change, told = series.points[1].change, beside.turns_kept
    assert change is not None
    assert told is not None
    assert change.difference == told.difference == -2
    assert (change.interval, change.is_real) == (told.interval, told.is_real)
    assert change.p_value == told.p_value  # a family of one


async def test_holms_correction_covers_every_change_of_turns_kept(store: MemoryStore) -> None:
    await pressed(store, STEADY, BREAKS, BREAKS, STEADY)

    [series] = (await kept(store)).models

    down, same, up = (point.change for point in series.points[1:])
    assert down
    assert same
    assert up
    assert (down.difference, same.difference, up.difference) == (-2, 0, 2)
    assert (down.is_real, same.is_real, up.is_real) == (True, False, True)
    # The sign test of ten scenarios that all agree has 2 / 2^10; Holm's factor is 3 for the first.
    assert same.p_value == 1
    assert down.p_value == up.p_value


async def test_a_step_in_turns_kept_is_told_in_turns(store: MemoryStore) -> None:
    worse = ("LL..", "..LL")
    weeks = [STEADY, STEADY, ("....", "...."), STEADY, BREAKS, worse, BREAKS, BREAKS]
    await pressed(store, *weeks)

    [series] = (await kept(store, changed=MONDAY + 4 * WEEK)).models

    [point], [least], date = series.change_points, series.detectable_changes, series.date_difference
    assert point.is_real
    assert point.difference == pytest.approx((0.5 + 1 + 0.5 + 0.5) / 4 - (2.5 * 3 + 3) / 4)
    assert "Falls by 2.00 turns between 2026-03-23 and 2026-03-30" in point.finding
    assert f"show a step of {least.least:.2f} turns between their halves" in least.finding
    assert date is not None
    assert date.finding.startswith("2.00 turns less after 2026-03-30")
    [trend] = series.trends
    assert "turns a week" in trend.finding or "No clear rise or fall" in trend.finding


async def test_points_of_another_version_are_taken_together(store: MemoryStore) -> None:
    weeks = (STEADY, ("....", "...."), BREAKS, ("LL..", "LL.."))
    for week, planned in enumerate(await pressed(store, *weeks)):
        version = {"model_version": "v1" if week < 2 else "v2"}
        answers = [a_response(run).model_copy(update=version) for run in planned.runs()]
        await record_unleased(store, answers)

    [series] = (await kept(store)).models

    [change] = series.version_changes
    # Before: 3 of 4 runs keep all, one breaks in turn 3. After: 3 of 4 break at once, one in 2.
    assert change.difference == pytest.approx((0 + 1) / 4 - (3 * 3 + 2) / 4)
    assert change.finding.startswith("These experiments differ: 2.50 turns less after than before")


async def test_turns_kept_rise_or_fall_by_turns_a_week(store: MemoryStore) -> None:
    rising = [("LL..", "LL.."), ("LL..", ".LL."), (".LL.", ".LL."), (".LL.", "..LL")]
    await pressed(store, *rising, ("..LL", "..LL"))

    [trend] = (await kept(store)).models[0].trends

    assert trend.slope_per_week == pytest.approx(0.5)
    assert trend.finding.startswith("Rises by 0.500 turns a week, more than chance explains")


async def test_points_of_other_scripts_do_not_join(store: MemoryStore) -> None:
    await pressed(store, STEADY)
    await filled(store, {MODEL: ("...", "...")}, week=1)

    found = await kept(store)

    [series] = found.models
    assert [point.joins for point in series.points] == [False, False]
    assert series.points[1].benchmark_changed == ("scenarios",)
    assert found.greatest == 3


async def test_an_experiment_of_one_turn_has_no_turns_kept(store: MemoryStore) -> None:
    await pressed(store, STEADY)
    plain = experiment(tutors(1), occasion="plain", created_at=MONDAY + WEEK)
    await seed(store, plain)

    found = await timeseries(store, figure=TURNS_KEPT)

    assert [series.model_id for series in found.models] == [MODEL]
    assert found.known_figures[-1] == TURNS_KEPT
    [other] = plain.manifest.models
    assert TURNS_KEPT not in (await timeseries(store, other.id)).known_figures


async def two_turns(store: MemoryStore, week: int, scores: tuple[float, float]) -> None:
    """An experiment in which the vector `asks` has these scores in both turns, `tells` others."""
    manifest = Manifest(
        models=(TutorModel(id=MODEL),),
        scenarios=tuple(
            Scenario(
                id=f"s{number}",
                dimension="student" if number < 6 else "ethical",
                prompt=f"Why {number}?",
                follow_ups=("And?",),
            )
            for number in range(12)
        ),
        repeats=1,
        profile="gone-v1",
    )
    planned = Experiment(manifest=manifest, occasion=f"{week}", created_at=MONDAY + week * WEEK)
    await store.register(planned)
    await store.fold(
        [
            ScoredResponse(
                run=run,
                turn=turn,
                last_turn=turn == 2,
                profile="gone-v1",
                status=Status.OK,
                vectors={
                    "asks": asks if run.dimension == "student" else 0.1,
                    "tells": 1 - asks,
                },
                overall=0.5,
            )
            for run in planned.runs()
            for turn, asks in enumerate(scores, 1)
        ],
        (),
    )


async def test_a_vector_in_one_turn_of_one_dimension_is_a_series(store: MemoryStore) -> None:
    for week, scores in enumerate(((0.3, 0.9), (0.3, 0.8), (0.3, 0.4))):
        await two_turns(store, week, scores)
    asked: dict[str, Any] = {"figure": "asks", "filters": Filters(dimension="student")}

    for figure, expected in (
        (await timeseries(store, MODEL, **asked, turn=2), [0.9, 0.8, 0.4]),
        (await timeseries(store, MODEL, **asked, turn=1), [0.3, 0.3, 0.3]),
        (await timeseries(store, MODEL, **asked), [0.6, 0.55, 0.35]),
        (await timeseries(store, MODEL, figure="asks", turn=2), [0.5, 0.45, 0.25]),
        (await timeseries(store, MODEL, turn=2), [0.5, 0.5, 0.5]),
    ):
        [series] = figure.models
        values = [point.value for point in series.points]
        assert values == pytest.approx(expected)
        assert {point.overall_score for point in series.points} == {0.5}
        assert {point.total_runs for point in series.points} == {6 if figure.dimension else 12}
        changes = [point.change.difference for point in series.points if point.change]
        assert changes == pytest.approx([b - a for a, b in pairwise(expected)])
    every = await timeseries(store, **asked, turn=2)
    assert every.notes == ("Every figure is that of turn 2 of dimension student alone.",)
    assert [point.value for point in every.models[0].points] == pytest.approx([0.9, 0.8, 0.4])


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"figure": "turns-kep"}, "a figure 'turns-kep'; did you mean \"turns-kept\"?"),
        ({"turn": 5}, "turn: no experiment has a turn 5; the longest scenario has 4 turns"),
        ({"figure": TURNS_KEPT, "turn": 2}, "turns kept are those of whole runs"),
        ({"figure": TURNS_KEPT, "profile": "socratic-v1"}, "socratic-v1 counts no breaks"),
    ],
)
async def test_a_figure_that_is_not_there_is_named(
    store: MemoryStore, asked: dict[str, Any], told: str
) -> None:
    await pressed(store, STEADY)

    with pytest.raises(InvalidInput, match=told):
        await timeseries(store, **asked)


async def test_turns_kept_without_scores_name_the_remedy(store: MemoryStore) -> None:
    await two_turns(store, 0, (0.3, 0.4))
    with pytest.raises(NoScores, match=r"rescore exp-[0-9a-z]+ --profile fidelity-1"):
        await kept(store)

    one_turn = MemoryStore()
    await seed(one_turn, experiment(tutors(1)))
    with pytest.raises(InvalidInput, match="run `scenarios: pressure-24`"):
        await timeseries(one_turn, figure=TURNS_KEPT)
    assert (await timeseries(MemoryStore(), figure=TURNS_KEPT)).models == ()
