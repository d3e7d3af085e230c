"""Each model's score over time: one point per experiment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import UnknownModel
from socratic_bench.results.cache.scores import KnownScores
from socratic_bench.results.filters import Filters
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.trends import timeseries as module
from socratic_bench.results.trends.timeseries import TimelineStore, timeseries
from tests.contract.store.facts import a_failure, a_score
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors

WEEK = timedelta(weeks=1)


async def test_points_are_the_figures_of_each_experiments_leaderboard(store: MemoryStore) -> None:
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


async def test_points_join_only_under_the_same_conditions(store: MemoryStore) -> None:
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


async def test_an_unknown_model_is_named(store: MemoryStore) -> None:
    assert (await timeseries(store)).models == ()
    with pytest.raises(UnknownModel, match="nobody"):
        await timeseries(store, "nobody")


async def test_older_experiments_beyond_the_bound_are_counted(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 12)
    for week in range(15):
        await store.register(
            experiment(tutors(2), occasion=f"{week}", created_at=MONDAY + week * WEEK)
        )

    found = await timeseries(store)

    assert (found.experiments, found.left_out) == (12, 3)
    assert found.models[0].points[-1].title == "14"


@dataclass(slots=True)
class Watched:
    """A store that notes the experiments whose cells are read."""

    store: MemoryStore
    read: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def cells(self, ids: Collection[str], model: str | None = None) -> Sequence[Cell]:
        self.read += ids
        return await self.store.cells(ids, model)


async def test_known_scores_are_read_again_once_a_cell_changed() -> None:
    store, known = MemoryStore(), KnownScores()
    watched = Watched(store)
    first, second = (
        experiment(tutors(2), occasion=f"{week}", created_at=MONDAY + week * WEEK)
        for week in range(2)
    )
    runs = {each.experiment_id: list(each.runs()) for each in (first, second)}

    async def read_after(*experiments: Experiment, profile: str | None = None) -> None:
        watched.read.clear()
        found = await timeseries(cast("TimelineStore", watched), None, profile, known=known)
        assert sorted(watched.read) == sorted(each.experiment_id for each in experiments)
        assert found == await timeseries(store, None, profile)

    for planned in (first, second):
        await store.register(planned)
        [*scored, _] = runs[planned.experiment_id]
        await store.fold([a_score(run) for run in scored], [])
    await read_after(first, second)
    await read_after()
    await store.fold([a_score(runs[second.experiment_id][-1])], [])
    await read_after(second)
    await store.fold([], [a_failure(runs[first.experiment_id][-1])])
    await read_after(first)
    await store.fold([a_score(runs[first.experiment_id][-1])], [])  # withdraws the failure
    await read_after(first)
    await store.fold([a_score(runs[second.experiment_id][0], profile="other-v1")], [])
    await read_after(second)
    await read_after(second, profile="other-v1")
    await read_after(first, second)
    filters = Filters(dimension="ethical")
    filtered = await timeseries(store, filters=filters, known=known)
    assert filtered == await timeseries(store, filters=filters) != await timeseries(store)
    await read_after()
    await store.change_state(second.experiment_id, ExperimentState.DELETED)
    await read_after()


async def test_scores_of_a_store_that_counts_no_changes_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, known = MemoryStore(), KnownScores()
    monkeypatch.setattr(MemoryStore, "cell_revisions", _no_revisions)
    planned = experiment(tutors(1), occasion="1", created_at=MONDAY)
    await store.register(planned)
    for count, run in enumerate(planned.runs(), 1):
        await store.fold([a_score(run)], [])
        [series] = (await timeseries(store, known=known)).models
        [point] = series.points
        assert point.total_runs == count


async def _no_revisions(_store: MemoryStore, _ids: Collection[str]) -> dict[str, str]:
    return {}


async def test_a_change_is_that_of_new_answers_beside_copies(store: MemoryStore) -> None:
    first = experiment(tutors(1), occasion="1", repeats=2)
    second = experiment(tutors(1), occasion="2", repeats=3, created_at=MONDAY + WEEK)
    for planned, copied in ((first, 0), (second, 2)):
        await store.register(planned)
        for run in planned.runs():
            is_copy = run.repeat <= copied
            overall = 0.9 if is_copy or planned is first else 0.3
            counts = {"note.answers": 1, **({"note.reused": 1} if is_copy else {})}
            await store.fold([a_score(run, overall=overall, counts=counts)], [])

    [series] = (await timeseries(store, first.manifest.models[0].id)).models
    [_, point] = series.points
    assert (point.reused, point.answers) == (30, 45)
    assert point.change is not None
    assert point.change.difference == pytest.approx(-0.6)

    [of_all] = (await timeseries(store)).models
    assert of_all.points[1].change is not None
    assert of_all.points[1].change.difference is None, "copies cannot be told apart here"
