"""A benchmark from its configuration to its figures, without output.

The command and `socratic_cli.run` take the same steps and report them differently.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from socratic_bench.adapters.stores.memory.leases import MemorySharedLimits
from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.errors import ExperimentStopped
from socratic_bench.planning.config_file.config import BenchmarkConfig
from socratic_bench.planning.estimate import Prospect, look_into
from socratic_bench.ports.models import ModelClient
from socratic_bench.ports.stores.aggregates import FailureCount
from socratic_bench.providers.endpoints.endpoint import Endpoints
from socratic_bench.reporting.costs import SpendingFigures
from socratic_bench.reporting.failures import why_unscored
from socratic_bench.reporting.leaderboard.comparison import ModelComparison, model_comparison
from socratic_cli.embedded import Benchmark, BenchmarkResult
from socratic_cli.execution.store_lock import store_lock
from socratic_cli.options.store import database_file, prepared_store
from socratic_runner.model_pool import OpenClient
from socratic_runner.models.registry import open_client


class Outcome(NamedTuple):
    """The outcome of a benchmark."""

    result: BenchmarkResult
    prospect: Prospect
    comparison: ModelComparison
    reasons: Mapping[str, str]
    """The reasons why models have no score."""

    failures: Sequence[FailureCount]
    spending: SpendingFigures


def client_opener(config: BenchmarkConfig, endpoints: Endpoints) -> OpenClient:
    """Return the opener of the clients of a configuration's models."""

    def opened(model: TutorModel) -> ModelClient:
        return open_client(
            model,
            base_folder=config.base_folder,
            endpoints=endpoints,
            key_variable=config.key_variables.get(model.id),
        )

    return opened


@asynccontextmanager
async def opened_benchmark(
    config: BenchmarkConfig,
    endpoints: Endpoints,
    store_url: str,
    *,
    retry_failed: bool = False,
    fresh: bool = False,
) -> AsyncIterator[tuple[Benchmark, Prospect]]:
    """Open a benchmark for one execution, with its prospect; its store is open meanwhile.

    The caller sets the receivers of progress, waits and troubles. Raises StoreInUse if another
    benchmark runs on the same file, ExperimentStopped if the experiment is stopped.
    """
    file = database_file(store_url)
    with store_lock(file):
        async with prepared_store(store_url) as store:
            if file is not None:
                # The holder of the lock is alone, so owners of leases are dead.
                await store.leave_others(owner="nobody")
            clock = SystemClock()
            experiment = config.experiment(clock.now(), submitted=False)
            prospect = await look_into(
                store, experiment, fresh=fresh, adopt=True, retry_failed=retry_failed
            )
            benchmark = Benchmark(
                experiment=experiment,
                store=store,
                open_client=client_opener(config, endpoints),
                clock=clock,
                retry_failed=retry_failed,
                limits=store if file is None else MemorySharedLimits(),
            )
            yield benchmark, prospect


async def outcome_of(benchmark: Benchmark, prospect: Prospect, result: BenchmarkResult) -> Outcome:
    """Return the figures of a benchmark after its execution.

    Raises ExperimentStopped if the experiment was deleted meanwhile.
    """
    store, experiment = benchmark.store, result.experiment
    experiment_id = experiment.experiment_id
    if result.state is ExperimentState.DELETED:
        raise ExperimentStopped(stopped_sentence(experiment_id, result.state))
    comparison = await model_comparison(store, experiment_id)
    reasons = await why_unscored(store, comparison)
    failures = await store.failure_kinds(experiment_id)
    spending = await store.spending(experiment_id)
    figures = SpendingFigures.of(spending, has_prices=benchmark.experiment.manifest.has_prices)
    return Outcome(result, prospect, comparison, reasons, failures, figures)
