"""One run of a benchmark from its configuration to its figures, without a word on a terminal.

The command and `socratic_cli.run` differ in whom they tell: both take these steps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.errors import ExperimentStopped
from socratic_bench.planning.config_file.config import BenchmarkConfig
from socratic_bench.ports.models import ModelClient
from socratic_bench.ports.stores.aggregates import FailureCount
from socratic_bench.providers.endpoints.endpoint import Endpoints
from socratic_bench.reporting.costs import SpendingFigures
from socratic_bench.reporting.failures import why_unscored
from socratic_bench.reporting.leaderboard.comparison import ModelComparison, model_comparison
from socratic_cli.embedded import Benchmark, BenchmarkResult
from socratic_cli.execution.prospect import Prospect, look_into
from socratic_cli.execution.store_lock import store_lock
from socratic_cli.options.store import database_file, prepared_store
from socratic_runner.clients import OpenClient
from socratic_runner.models.registry import open_client


class Outcome(NamedTuple):
    """What came of a benchmark."""

    result: BenchmarkResult
    prospect: Prospect
    comparison: ModelComparison
    reasons: Mapping[str, str]
    """Why models have no score."""

    failures: Sequence[FailureCount]
    spending: SpendingFigures


def client_opener(config: BenchmarkConfig, endpoints: Endpoints) -> OpenClient:
    """Opens the clients of a configuration's models."""

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
    """A benchmark to be executed once, and what there is to do; its store is open meanwhile.

    The caller sets who is told of progress, waits and troubles. Raises StoreInUse where another
    benchmark runs on the same file, ExperimentStopped where the experiment may not go on.
    """
    file = database_file(store_url)
    with store_lock(file):
        async with prepared_store(store_url) as store:
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
                alone=file is not None,  # the holder of its lock is
            )
            yield benchmark, prospect


async def outcome_of(benchmark: Benchmark, prospect: Prospect, result: BenchmarkResult) -> Outcome:
    """The figures of a benchmark after its execution.

    Raises ExperimentStopped where the experiment was deleted meanwhile.
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
