"""A table of pools is the table of all cells, whatever happens between two of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.results.cache import pools
from socratic_bench.results.cache.pools import KnownPools
from socratic_bench.results.experiment_choice import CostedStore
from socratic_bench.results.filters import Filters
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from tests.contract.store.facts import MONDAY, a_failure, a_score, an_experiment
from tests.lengths import at_length

Deed = Literal["score", "fail", "finish", "rescore", "delete"]

DEEDS: tuple[Deed, ...] = ("score", "fail", "finish", "finish", "rescore", "delete")

ETHICAL = Filters(dimension="ethical")

EXPERIMENTS = [
    an_experiment(repeats=1),
    an_experiment(repeats=2, created_at=MONDAY + timedelta(days=1)),  # asks the same
    an_experiment(models=1, repeats=3, created_at=MONDAY - timedelta(days=1)),
    *(
        an_experiment(occasion=f"{week}", created_at=MONDAY + timedelta(weeks=week))
        for week in range(3)
    ),
    an_experiment(scenarios=2, occasion="other conditions"),
]


@dataclass(slots=True)
class Watched:
    """A store that notes the experiments whose cells are read."""

    store: MemoryStore = field(default_factory=MemoryStore)
    read: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def cells(self, ids: Collection[str], **chosen: str) -> Sequence[Cell]:
        self.read += ids
        return await self.store.cells(ids, **chosen)


async def do(store: MemoryStore, planned: Experiment, deed: Deed, number: int) -> None:
    """Change a registered experiment."""
    runs = list(planned.runs())
    run = runs[number % len(runs)]
    if deed == "score":
        await store.fold([a_score(run, overall=number / 10)], [])
    elif deed == "fail":
        await store.fold([], [a_failure(run)])
    elif deed == "rescore":
        await store.fold([a_score(run, profile="other-v1")], [])
    elif deed == "finish":
        scored = [a_score(each, overall=number / 10) for each in runs if each != run]
        await store.fold(scored, [a_failure(run)])  # a score may overrule it later
        await store.complete(planned.experiment_id, MONDAY)
    elif deed == "delete":
        await store.change_state(planned.experiment_id, ExperimentState.DELETED)


async def compare(deeds: Sequence[tuple[int, Deed, int]]) -> None:
    """Register three complete experiments, and do these deeds to those that are not deleted."""
    store, known = MemoryStore(), KnownPools()
    registered, deleted = set(range(2, 5)), set[int]()
    for place in registered:
        await store.register(EXPERIMENTS[place])
        await do(store, EXPERIMENTS[place], "finish", 5)
    for place, deed, number in deeds:
        if place not in registered:
            await store.register(EXPERIMENTS[place])
            registered.add(place)
        if place not in deleted:
            await do(store, EXPERIMENTS[place], deed, number)
        if deed == "delete":
            deleted.add(place)
        table = await model_comparison(store, "all", known=known)
        assert table == await model_comparison(store, "all")
        if "ethical" in table.dimensions:
            filtered = await model_comparison(store, "all", filters=ETHICAL, known=known)
            assert filtered == await model_comparison(store, "all", filters=ETHICAL)


@pytest.mark.two_lengths
@pytest.mark.parametrize("most", [40_000, 15])
def test_a_table_of_pools_is_the_table_of_all_cells(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(pools, "MOST_CELLS", most)
    monkeypatch.setattr(pools, "EXPERIMENTS_PER_QUERY", 2)
    places = st.integers(0, len(EXPERIMENTS) - 1)
    deed = st.tuples(places, st.sampled_from(DEEDS), st.integers(0, 10))

    with asyncio.Runner() as loop:

        @settings(max_examples=at_length(15, 25))
        @given(st.lists(deed, min_size=1, max_size=12))
        def hold(deeds: list[tuple[int, Deed, int]]) -> None:
            loop.run(compare(deeds))

        hold()


async def test_only_cells_of_running_and_of_changed_experiments_are_read() -> None:
    watched, known = Watched(), KnownPools()
    old, older, running = EXPERIMENTS[3:6]

    async def read() -> set[str]:
        watched.read.clear()
        await model_comparison(cast("CostedStore", watched), "all", known=known)
        return set(watched.read)

    for planned in (old, older, running):
        await watched.store.register(planned)
        await do(watched.store, planned, "score", 0)
    for planned in (old, older):
        await do(watched.store, planned, "finish", 3)
    ids = {planned.experiment_id for planned in (old, older, running)}
    assert await read() == ids
    assert await read() == {running.experiment_id}
    await do(watched.store, running, "score", 1)
    assert await read() == {running.experiment_id}
    await do(watched.store, running, "finish", 2)
    assert await read() == {running.experiment_id}
    assert await read() == set()
    await do(watched.store, old, "rescore", 1)
    assert await read() == ids  # a pool does not give back what it has taken in
    assert await read() == set()
