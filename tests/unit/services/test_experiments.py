"""A runner reads an experiment for all its batches at once, and goes by what changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_runner import experiments
from socratic_runner.experiments import Experiments
from tests.contract.store.facts import an_experiment


class CountingStore(SqlStore):
    """Counts how often each experiment is read."""

    reads: Counter[str]

    async def experiment(self, experiment_id: str) -> Experiment | None:
        self.reads[experiment_id] += 1
        return await super().experiment(experiment_id)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CountingStore]:
    opened = CountingStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    opened.reads = Counter()
    await opened.prepare()
    yield opened
    await opened.close()


async def test_batches_that_begin_together_read_an_experiment_once(store: CountingStore) -> None:
    id_ = (await store.register(an_experiment())).experiment_id
    known = Experiments(store)
    found = await asyncio.gather(*(known.named([id_]) for _ in range(20)))
    assert store.reads == {id_: 1}
    assert len({id(each[id_]) for each in found}) == 1


async def test_an_experiment_that_has_not_changed_stays_the_same_object(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is worked out from it, and the clients of its models, would have to be made anew."""
    monkeypatch.setattr(experiments, "FRESH", -1.0)
    id_ = (await store.register(an_experiment())).experiment_id
    known = Experiments(store)
    first = (await known.named([id_]))[id_]
    assert isinstance(first, Experiment)
    assert first.conversation_keys
    assert (await known.named([id_]))[id_] is first
    assert store.reads == {id_: 2}
