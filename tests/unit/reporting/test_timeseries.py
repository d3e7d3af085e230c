"""Each model's score over time: one point per experiment."""

from __future__ import annotations

from datetime import timedelta

import pytest

from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.errors import UnknownModel
from socratic_bench.reporting.leaderboard.comparison import model_comparison
from socratic_bench.reporting.timeline import timeseries as module
from socratic_bench.reporting.timeline.timeseries import timeseries
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors

WEEK = timedelta(weeks=1)


async def test_points_are_the_figures_of_each_experiments_leaderboard(store: SqlStore) -> None:
    weeks = [
        experiment(tutors(3), occasion=f"{week}", created_at=MONDAY + week * WEEK)
        for week in range(3)
    ]
    for planned in weeks:
        await seed(store, planned)

    found = await timeseries(store)

    assert [each.model_id for each in found.models] == sorted(m.id for m in tutors(3))
    for series in found.models:
        assert [each.experiment_id for each in series.points] == [e.experiment_id for e in weeks]
        for point in series.points:
            table = await model_comparison(store, point.experiment_id)
            [row] = [each for each in table.models if each.model_id == series.model_id]
            assert point.overall_score == row.overall_score
            assert point.confidence_interval == row.confidence_interval
            assert point.coverage == row.coverage


async def test_points_join_only_under_the_same_conditions(store: SqlStore) -> None:
    plans = [
        experiment(tutors(3), occasion="first"),
        experiment(tutors(4), occasion="another model", created_at=MONDAY + WEEK),
        experiment(tutors(3), occasion="another prompt", created_at=MONDAY + 2 * WEEK),
    ]
    manifest = plans[2].manifest.model_copy(update={"system_prompt": "Ask."})
    plans[2] = type(plans[2])(
        manifest=manifest, occasion=plans[2].occasion, created_at=plans[2].created_at
    )
    for planned in plans:
        await seed(store, planned)

    found = await timeseries(store, tutors(3)[2].id)

    [series] = found.models
    assert [point.joins for point in series.points] == [False, True, False]


async def test_an_unknown_model_is_named(store: SqlStore) -> None:
    assert (await timeseries(store)).models == ()
    with pytest.raises(UnknownModel, match="nobody"):
        await timeseries(store, "nobody")


async def test_older_experiments_beyond_the_bound_are_counted(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 12)
    for week in range(15):
        await store.register(
            experiment(tutors(2), occasion=f"{week}", created_at=MONDAY + week * WEEK)
        )

    found = await timeseries(store)

    assert (found.experiments, found.left_out) == (12, 3)
    assert found.models[0].points[-1].title == "14"
