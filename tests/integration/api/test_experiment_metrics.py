"""The metrics of experiments: how many are in each state, and where their money is."""

from __future__ import annotations

import math

import pytest

from socratic_api import experiment_metrics
from socratic_api.experiment_metrics import ExperimentMetrics
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.hosting.metrics import Metrics
from socratic_bench.ports.stores.leases import CallEnd
from tests.contract.store.facts import MONDAY, a_failure, an_experiment, claim_of
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


async def test_the_money_of_incomplete_experiments_is_spent_reserved_or_left(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_metrics, "INTERVAL", 0.01)
    metrics = Metrics()

    async def parts() -> list[float | None]:
        return [
            metrics.registry.get_sample_value("socratic_budget_usd", {"part": part})
            for part in ("spent", "reserved", "left")
        ]

    limited = an_experiment(occasion="w1", budget=10_000_000_000)
    unlimited = an_experiment(occasion="w2")
    for each in (limited, unlimited):
        await store.register(each)
        first, second, *_ = each.runs()
        billed = claim_of(first, "billed", 2_000_000_000)
        in_flight = claim_of(second, "in flight", 2_000_000_000)
        await store.heartbeat("runner", [])
        await store.take_leases([billed, in_flight], "runner")
        await store.end_calls([CallEnd(billed.key, billed=True)])
    async with ExperimentMetrics(metrics).watching(store):
        await until(parts, lambda found: found == [2, 2, 6], "the parts of the one budget")
        await store.fold([], [a_failure(run) for run in limited.runs()])
        await store.complete(limited.experiment_id, MONDAY)
        await until(parts, lambda found: found == [0, 0, 0], "no incomplete experiment")
        await store.close()
        await until(parts, lambda found: math.isnan(found[0] or 0), "the store to be missed")
