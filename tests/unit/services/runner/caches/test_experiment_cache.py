"""A runner reads an experiment once for all its batches, and notices changes."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from socratic_bench.adapters.stores.memory.experiments import MemoryExperiments
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import RETRIES
from socratic_runner import experiment_cache
from socratic_runner.experiment_cache import ExperimentCache
from tests.contract.store.facts import an_experiment


class CountingExperiments(MemoryExperiments):
    """Counts how often each experiment is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()

    async def experiment(self, experiment_id: str) -> Experiment | None:
        self.reads[experiment_id] += 1
        return await super().experiment(experiment_id)


@pytest.fixture
def stored() -> CountingExperiments:
    return CountingExperiments()


async def test_batches_that_begin_together_read_an_experiment_once(
    stored: CountingExperiments,
) -> None:
    id_ = (await stored.register(an_experiment())).experiment_id
    known = ExperimentCache(stored)
    found = await asyncio.gather(*(known.named({id_: set()}) for _ in range(20)))
    assert stored.reads == {id_: 1}
    assert len({id(each[id_]) for each in found}) == 1


async def test_an_experiment_that_has_not_changed_stays_the_same_object(
    stored: CountingExperiments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new object would make the runner derive its figures and open its clients again."""
    monkeypatch.setattr(experiment_cache, "FRESH", -1.0)
    id_ = (await stored.register(an_experiment())).experiment_id
    known = ExperimentCache(stored)
    first = (await known.named({id_: set()}))[id_]
    assert isinstance(first, Experiment)
    assert first.conversation_keys
    assert (await known.named({id_: set()}))[id_] is first
    assert stored.reads == {id_: 2}


async def test_a_request_of_a_raised_priority_has_the_experiment_read_again(
    stored: CountingExperiments,
) -> None:
    known, model = ExperimentCache(stored), "reference/tutor-0"
    id_ = (await stored.register(an_experiment(models=1))).experiment_id
    for _ in range(2):
        await known.named({id_: {model}})
    await stored.register(an_experiment(models=1, priority="high"))
    for group in ("high:reference/tutor-0", model, RETRIES):
        found = (await known.named({id_: {group}}))[id_]
        assert isinstance(found, Experiment)
        assert found.manifest.priority == "high"
    assert stored.reads == {id_: 2}
