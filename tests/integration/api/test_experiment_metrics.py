"""How many experiments are running, complete, out of budget, paused and cancelled."""

from __future__ import annotations

import math

import pytest

from socratic_api import experiment_metrics
from socratic_api.experiment_metrics import ExperimentMetrics
from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.hosting.metrics.process_metrics import Metrics
from tests.contract.store.facts import MONDAY, a_failure, an_experiment
from tests.waiting import until


async def test_experiments_are_counted_by_state(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_metrics, "INTERVAL", 0.01)
    metrics = Metrics()

    async def counts() -> list[float | None]:
        return [
            metrics.registry.get_sample_value("socratic_experiments", {"state": state})
            for state in ("running", "complete", "exhausted", "paused", "cancelled")
        ]

    complete, exhausted = an_experiment(occasion="w1"), an_experiment(occasion="w2", budget=5)
    stopped = [an_experiment(occasion=each) for each in ("w4", "w5", "w6")]
    for each in (complete, exhausted, an_experiment(occasion="w3"), *stopped):
        await store.register(each)
    async with ExperimentMetrics(metrics).watching(store):
        await until(counts, lambda found: found == [6, 0, 0, 0, 0], "six running experiments")
        await store.fold([], [a_failure(run) for run in complete.runs()])
        await store.complete(complete.experiment_id, MONDAY)
        for each, state in zip(stopped, ("paused", "cancelled", "deleted"), strict=True):
            await store.change_state(each.experiment_id, ExperimentState(state))
        await store.exhaust(exhausted.experiment_id, 6)
        await until(counts, lambda found: found == [1, 1, 1, 1, 1], "one experiment of each kind")
        await store.close()
        await until(counts, lambda found: math.isnan(found[0] or 0), "the store to be missed")
