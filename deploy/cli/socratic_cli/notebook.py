"""`await run(...)`: a benchmark from Python, for example in a notebook."""

from __future__ import annotations

import asyncio
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from socratic_bench.errors import InvalidConfig, Mistake
from socratic_bench.planning.config_file.config import BenchmarkConfig, parse_config, read_config
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_bench.ports.stores.experiments import Progress
from socratic_cli.embedded import Benchmark, BenchmarkResult
from socratic_cli.execution.benchmark_run import opened_benchmark, outcome_of
from socratic_cli.execution.run_result import RunResult, result_of
from socratic_cli.key_approval import access_check, own_endpoints, with_approved_keys
from socratic_cli.options.store import DEFAULT_STORE

GIVEN = "the configuration"
"""The word for a mapping in mistakes."""

_LINE = re.compile(r" line \d+")


async def run(
    config: str | Path | Mapping[str, Any],
    *,
    store: str | Path | None = None,
    on_progress: Callable[[Progress], object] | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
) -> RunResult:
    """Carry out a benchmark as `socratic-bench run` does; returns its figures and responses.

    `config` is a file, or a mapping of the same shape whose paths are relative to the working
    folder. `store` is an address or the path of a database file; None is SOCRATIC_STORE_URL, or
    socratic-bench.db in the working folder. `on_progress` is called a few times a second. `fresh`
    reuses no answers of other experiments, `retry_failed` asks failed runs once more.

    The same call again continues an interrupted benchmark. A cancelled call begins no further model
    call, stores the calls in flight and then raises CancelledError; a second cancellation ends it
    at once.

    Raises InvalidConfig with every mistake, other InvalidInput such as MissingCredential and
    UnlistedEndpoint, StoreInUse, ExperimentStopped, StoreError, and the error of `on_progress`,
    once all calls in flight are stored.
    """
    endpoints = own_endpoints()
    read = _read(config, RegisteredModels(access_check(endpoints)))
    for unused in read.unused:
        warnings.warn(str(unused), stacklevel=2)
    endpoints = with_approved_keys(endpoints, read)
    async with opened_benchmark(
        read, endpoints, _address(store), fresh=fresh, retry_failed=retry_failed
    ) as (benchmark, prospect):
        listener = None if on_progress is None else _Listener(benchmark, on_progress)
        result = await _executed(benchmark)
        if listener is not None and listener.error is not None:
            raise listener.error
        outcome = await outcome_of(benchmark, prospect, result)
        return await result_of(benchmark.store, outcome)


def _read(config: str | Path | Mapping[str, Any], models: RegisteredModels) -> BenchmarkConfig:
    if not isinstance(config, Mapping):
        return read_config(config, models)
    try:
        text = json.dumps(dict(config))
    except (TypeError, ValueError) as error:
        raise InvalidConfig(
            [Mistake(GIVEN, f"holds a value that JSON cannot hold: {error}")]
        ) from None
    try:
        return parse_config(
            text, name=GIVEN, base_folder=Path.cwd(), catalogue=models, variables=os.environ
        )
    except InvalidConfig as error:
        # A mapping has fields and no lines.
        raise InvalidConfig(
            [Mistake(_LINE.sub("", each.place), each.problem) for each in error.mistakes]
        ) from None


def _address(store: str | Path | None) -> str:
    if store is None:
        return os.environ.get("SOCRATIC_STORE_URL") or DEFAULT_STORE
    return store if isinstance(store, str) and "://" in store else f"sqlite:///{store}"


class _Listener:
    """Calls a caller's `on_progress`. Its error stops the benchmark, and loses no paid reply."""

    def __init__(self, benchmark: Benchmark, tell: Callable[[Progress], object]) -> None:
        self.error: Exception | None = None
        self._benchmark, self._tell = benchmark, tell
        benchmark.on_progress = self._update

    async def _update(self, progress: Progress) -> None:
        try:
            self._tell(progress)
        except Exception as error:  # noqa: BLE001 - raised once calls in flight are stored
            self.error = error
            self._benchmark.on_progress = None
            self._benchmark.stop()


async def _executed(benchmark: Benchmark) -> BenchmarkResult:
    """Execute a benchmark in a task of its own, which survives the first cancellation."""
    task = asyncio.create_task(benchmark.execute())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        benchmark.stop()
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error from None
        raise
