"""How many experiments are in which state, as Prometheus reads it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Literal, get_args

from prometheus_client import Gauge

from socratic_bench.domain.manifest import Experiment
from socratic_bench.errors import StoreError
from socratic_bench.hosting.deadlines import within
from socratic_bench.hosting.metrics import Metrics, looking
from socratic_bench.ports.store import Store

INTERVAL: Final = 15.0
"""Seconds between two looks at the experiments."""

DEADLINE: Final = 10.0
"""Seconds that the store may take to tell."""

State = Literal["running", "complete", "exhausted"]


class ExperimentMetrics:
    """How many experiments are in which state, looked up every few seconds."""

    def __init__(self, metrics: Metrics) -> None:
        self._experiments = Gauge(
            "socratic_experiments",
            "Experiments: complete, out of budget (exhausted), or else running. NaN while the "
            "store does not say",
            ("state",),
            registry=metrics.registry,
        )

    def watching(self, store: Store) -> AbstractAsyncContextManager[None]:
        """Look while the context is open."""

        async def look() -> None:
            try:
                states = await within(DEADLINE, _states(store))
            except (StoreError, TimeoutError):
                self._show(dict.fromkeys(get_args(State), math.nan))
            else:
                self._show(states)

        return looking(look, INTERVAL)

    def _show(self, states: Mapping[State, float]) -> None:
        for state in get_args(State):
            self._experiments.labels(state).set(states.get(state, 0))


async def _states(store: Store) -> Counter[State]:
    return Counter([await _state(store, each) for each in await store.experiments()])


async def _state(store: Store, experiment: Experiment) -> State:
    if experiment.completed_at is not None:
        return "complete"
    spending = await store.spending(experiment.experiment_id)
    return "exhausted" if spending.exhausted else "running"
