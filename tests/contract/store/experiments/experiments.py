"""Experiments as these tests change them."""

from __future__ import annotations

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import (
    a_score,
)


async def ended(store: Store, experiment: Experiment) -> Experiment:
    """The experiment, registered, with a score of every run."""
    stored = await store.register(experiment)
    await store.fold([a_score(run) for run in experiment.runs()], [])
    return stored
