"""A benchmark from its configuration to its figures, and its end on Ctrl-C.

The command and `socratic_cli.run` take the same steps and report them differently.

Two benchmarks on one database file would mistake each other's leases for their own. A lock of the
operating system refuses the second; it ends with the process, even after a kill.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.memory.leases import MemorySharedLimits
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.errors import ExperimentStopped, SocraticBenchError, StoreBroken
from socratic_bench.hosting.process import hang_up
from socratic_bench.planning.config_file.config import BenchmarkConfig
from socratic_bench.planning.estimate import Prospect, look_into
from socratic_bench.ports.models import ModelClient
from socratic_bench.ports.stores.aggregates import FailureCount
from socratic_bench.providers.endpoints import Endpoints
from socratic_bench.results.costs import SpendingFigures
from socratic_bench.results.experiment_status import why_unscored
from socratic_bench.results.leaderboard.leaderboard import ModelComparison, model_comparison
from socratic_cli.display.terminal import say
from socratic_cli.embedded import Benchmark, BenchmarkResult
from socratic_cli.options.store import database_file, prepared_store
from socratic_runner.model_pool import OpenClient
from socratic_runner.models.registry import open_client


class StoreInUse(SocraticBenchError):
    """Another benchmark is running on this store."""


@contextmanager
def store_lock(database: Path | None) -> Iterator[None]:
    """Hold the lock of a database file; a store without a file needs none.

    Raises StoreInUse at once if another process holds the lock, StoreBroken if the lock cannot be
    taken.
    """
    if database is None:
        yield
        return
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
        # The system frees this lock after a kill; a row would stay.
        lock = FileLock(f"{database}.lock", timeout=0)
        lock.acquire()
    except Timeout:
        raise StoreInUse(
            f"another benchmark is running on {database}: wait for it, or name another store "
            "with --store"
        ) from None
    except OSError as error:
        raise StoreBroken(
            f"{database} cannot be used: {error.strerror}: {error.filename}; name another store "
            "with --store"
        ) from None
    try:
        yield
    finally:
        lock.release()


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


async def outcome_of(
    benchmark: Benchmark,
    prospect: Prospect,
    result: BenchmarkResult,
    profile: str | None = None,
) -> Outcome:
    """Return the figures of a benchmark after its execution, by its own profile or `profile`.

    Raises ExperimentStopped if the experiment was deleted meanwhile.
    """
    store, experiment = benchmark.store, result.experiment
    experiment_id = experiment.experiment_id
    if result.state is ExperimentState.DELETED:
        raise ExperimentStopped(stopped_sentence(experiment_id, result.state))
    comparison = await model_comparison(store, experiment_id, profile)
    reasons = await why_unscored(store, comparison)
    failures = await store.failure_kinds(experiment_id)
    spending = await store.spending(experiment_id)
    figures = SpendingFigures.in_plan(spending, benchmark.experiment.manifest)
    return Outcome(result, prospect, comparison, reasons, failures, figures)


class WaitNotice:
    """Reports each kind of trouble once, and the end of the wait once."""

    def __init__(self) -> None:
        self._told: set[type[Exception]] = set()

    @property
    def waits(self) -> bool:
        """True while the last report was a trouble."""
        return bool(self._told)

    def update(self, error: Exception | None) -> None:
        """Report the present trouble; None ends the wait."""
        if error is None:
            if self._told:
                say("Going on: the store has the waiting replies.")
            self._told.clear()
        elif type(error) not in self._told:
            self._told.add(type(error))
            say(
                f"Waiting: {error}. The benchmark keeps paid replies and continues by itself as "
                "soon as the store takes them. Ctrl-C stops it."
            )


STOPPING = "Stopping: calls in flight are finished and stored (Ctrl-C: at once)."
STOPPING_UNSTORED = (
    "Stopping: paid replies still wait for the store, for some minutes at most "
    "(Ctrl-C: at once, and they are lost)."
)


@contextmanager
def stopped_by_interrupt(benchmark: Benchmark, notice: WaitNotice) -> Iterator[None]:
    """Let the first Ctrl-C finish and store the calls in flight; the second ends at once.

    SIGTERM and a lost terminal do as the first.

    The second cancels the task in the context, which then raises KeyboardInterrupt. Python's own
    handler raises it anywhere in the event loop. The loop then loses a callback, and a task that
    waits for the callback never ends.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    interrupted = False
    orderly = (signal.SIGTERM, *hang_up())

    def stop() -> None:
        say(STOPPING_UNSTORED if notice.waits else STOPPING)
        loop.add_signal_handler(signal.SIGINT, end)
        benchmark.stop()

    def end() -> None:
        nonlocal interrupted
        interrupted = True
        loop.remove_signal_handler(signal.SIGINT)
        if task is not None:
            task.cancel()

    try:
        loop.add_signal_handler(signal.SIGINT, stop)
        for number in orderly:
            loop.add_signal_handler(number, benchmark.stop)
    except NotImplementedError:  # Windows: Ctrl-C interrupts at once there
        yield
        return
    try:
        yield
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number in (signal.SIGINT, *orderly):
            loop.remove_signal_handler(number)
