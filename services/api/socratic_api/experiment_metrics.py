"""The states of experiments, and their money, as Prometheus reads them."""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from typing import Final, Literal, Protocol, get_args

from prometheus_client import Gauge

from socratic_bench.concurrency.deadlines import within
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.errors import StoreError
from socratic_bench.hosting.metrics import Metrics, looking
from socratic_bench.ports.stores.experiments import ExperimentCounts, Experiments
from socratic_bench.ports.stores.leases import Leases, Spending

INTERVAL: Final = 15.0
"""Seconds between two queries of the experiments."""

DEADLINE: Final = 10.0
"""Seconds that the store may take to answer."""

Part = Literal["spent", "reserved", "left"]


class ExperimentsAndLeases(Experiments, Leases, Protocol):
    """The roles of a store that have these figures."""


class ExperimentMetrics:
    """Looks up the experiments of a store every few seconds."""

    def __init__(self, metrics: Metrics) -> None:
        self._experiments = Gauge(
            "socratic_experiments",
            "Experiments: complete, paused, cancelled, out of budget (exhausted), or else running. "
            "NaN while the store does not say",
            ("state",),
            registry=metrics.registry,
        )
        self._money = Gauge(
            "socratic_budget_usd",
            "USD of the budgets of incomplete experiments: spent, reserved for calls in flight, "
            "and left. NaN while the store does not say",
            ("part",),
            registry=metrics.registry,
        )
        self._show_experiments(None)
        self._show_money(None)

    def watching(self, store: ExperimentsAndLeases) -> AbstractAsyncContextManager[None]:
        """Look while the context is open."""

        async def read() -> tuple[ExperimentCounts, Collection[Spending]]:
            counts = await store.count_experiments()
            running = [each.experiment_id for each in await store.running()]
            return counts, (await store.spending_of(running)).values()

        async def look() -> None:
            try:
                counts, spendings = await within(DEADLINE, read())
            except (StoreError, TimeoutError):
                self._show_experiments(None)
                self._show_money(None)
            else:
                self._show_experiments(counts)
                self._show_money(spendings)

        return looking(look, INTERVAL)

    def _show_experiments(self, counts: ExperimentCounts | None) -> None:
        for state in fields(ExperimentCounts):
            count = math.nan if counts is None else getattr(counts, state.name)
            self._experiments.labels(state.name).set(count)

    def _show_money(self, spendings: Collection[Spending] | None) -> None:
        for part in get_args(Part):
            usd = math.nan
            if spendings is not None:
                usd = sum(_part(each, part) for each in spendings) / NANODOLLARS_PER_DOLLAR
            self._money.labels(part).set(usd)


def _part(spending: Spending, part: Part) -> int:
    """One part of an experiment's budget, in nanodollars; 0 without a budget."""
    if spending.budget is None:
        return 0
    if part == "spent":
        return spending.committed - spending.in_flight
    if part == "reserved":
        return spending.in_flight
    return max(0, spending.budget - spending.committed)
