"""Deletion: an experiment's rows, and the waiting requests of its models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.experiments import Experiments


async def remove_rows(store: Experiments, experiment_id: str) -> AsyncIterator[int]:
    """Remove all rows of a deleted experiment; yields the number of each step.

    A step takes a moment. A later call removes what an interrupted one left.
    """
    while rows := await store.delete_rows(experiment_id):
        yield rows


async def remove_requests(broker: Broker, store: Experiments, experiment: Experiment) -> None:
    """Remove the waiting requests of a deleted experiment's models.

    Keeps those of models that another open experiment names. Raises BrokerError.
    """
    models = await _unneeded(store, experiment)
    await broker.declare(WORK_QUEUES, BROADCASTS)
    for model in sorted(models):
        await broker.remove_group(RUNNER_RUN_REQUESTED.name, model)


async def _unneeded(store: Experiments, experiment: Experiment) -> Collection[str]:
    """Return its models that no other open experiment names."""
    running = [each for each in await store.running() if each.state.calls_may_begin]
    needed = frozenset[str]().union(*(each.model_ids for each in running))
    return experiment.manifest.models_by_id.keys() - needed
