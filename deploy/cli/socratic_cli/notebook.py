"""`await run(...)` and `await load(...)`: a benchmark from Python, for example in a notebook."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import structlog

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run, RunFailure, batches
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import InvalidConfig, Mistake
from socratic_bench.planning.config_file.config import BenchmarkConfig, parse_config, read_config
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_bench.plugins import require_package
from socratic_bench.ports.broker import DeadLetter
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.formats import MISSING, figure, interval, printable
from socratic_bench.results.leaderboard.leaderboard import ModelComparison, model_comparison
from socratic_cli.benchmark_run import opened_benchmark, outcome_of
from socratic_cli.display.command_log import warn_in_lines
from socratic_cli.embedded import Benchmark, BenchmarkResult
from socratic_cli.key_approval import access_check, own_endpoints, with_approved_keys
from socratic_cli.options.store import DEFAULT_STORE, readable_store

RUNS_TOGETHER = 500
"""The number of runs whose responses are read at a time."""


class RunResultStore(Responses, Aggregates, Protocol):
    """The roles of the store that a result is read from."""


@dataclass(frozen=True, slots=True)
class ResponseRow:
    """A model's response in one turn, and its scores."""

    model: str
    scenario: str
    dimension: str
    repeat: int
    turn: int
    model_name: str
    """The model's name for people."""

    student_message: str
    text: str
    """The tutor's response."""

    status: str
    vectors: Mapping[str, float | None] | None
    """0.0 to 1.0 each, unrounded; None for a vector that does not apply; all None: unscored."""

    overall: float | None
    """0.0 to 1.0, unrounded; None: unscored, which is not zero."""

    cost_usd: float | None
    """None: unknown, which is not zero."""

    latency_ms: int | None
    input_tokens: int | None
    """None: no count of the provider."""

    output_tokens: int | None
    """With reasoning; None: no count of the provider."""


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run without a response after all its tries."""

    model: str
    scenario: str
    dimension: str
    repeat: int
    turn: int
    """The turn that failed."""

    kind: str
    """The class of the failure, such as `rate_limited`."""

    message: str
    """The provider's message."""

    attempts: int


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """The results of a benchmark, as stored at its end."""

    experiment_id: str
    comparison: ModelComparison
    """The leaderboard: the same figures as `socratic-bench leaderboard --experiment ID`."""

    responses: tuple[ResponseRow, ...]
    """In the order of the plan, with those of earlier executions."""

    failures: tuple[FailedRun, ...]
    """In the order of the plan; a run that later got a response is left out."""

    progress: Progress
    """The progress of the experiment, in runs."""

    dead_letters: tuple[DeadLetter, ...]
    """Messages that no handler could handle; their runs are not done. A loaded result has none."""

    def __repr__(self) -> str:
        return f"RunResult({self._summary})"

    def _repr_html_(self) -> str:
        """Return the leaderboard as a table for a notebook; every text in it is escaped."""
        rows = "".join(
            f"<tr><td>{_html(each.model_name)}</td><td>{figure(each.overall_score)}</td>"
            f"<td>{interval(each.confidence_interval)}</td>"
            f"<td>{each.scored_responses or MISSING}</td></tr>"
            for each in self.comparison.rows
        )
        notes = "".join(f"<p>{_html(note)}</p>" for note in self.comparison.cautions)
        return (
            f"<p>{_html(self._summary)}</p><table><thead><tr><th>model</th><th>overall</th>"
            "<th>95 % interval</th><th>scored responses</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>{notes}"
        )

    @property
    def _summary(self) -> str:
        done = f"{self.progress.done} of {self.progress.planned} runs done"
        return f"{self.experiment_id}: {done}, {self.progress.failed} failed"

    @property
    def finished(self) -> bool:
        """True once every planned run is done or failed."""
        return self.progress.done >= self.progress.planned

    def to_pandas(self) -> Any:
        """Return the responses as a pandas.DataFrame: a row each, a column for each vector.

        Raises MissingExtra without pandas.
        """
        require_package("pandas", needed_by="to_pandas()", extra="pandas")
        names = self.comparison.vectors
        columns = [name for name in ResponseRow.__slots__ if name != "vectors"]
        rows = [
            {name: getattr(row, name) for name in columns}
            | {name: (row.vectors or {}).get(name) for name in names}
            for row in self.responses
        ]
        return import_module("pandas").DataFrame(rows, columns=[*columns, *names])


def _html(text: str) -> str:
    return escape(printable(text))


async def result_of(
    store: RunResultStore,
    experiment: Experiment,
    comparison: ModelComparison,
    progress: Progress,
    dead_letters: tuple[DeadLetter, ...] = (),
) -> RunResult:
    """Read all results of an experiment into memory."""
    names = {model: each.name or model for model, each in experiment.manifest.models_by_id.items()}
    scores = await _scores(store, experiment)
    responses: list[ResponseRow] = []
    failures: list[FailedRun] = []
    failed = await _failures(store, experiment)
    for batch in batches(experiment.runs(), RUNS_TOGETHER):
        stored = await store.responses([run.run_id for run in batch])
        for run in batch:
            turns = stored.get(run.run_id, ())
            responses += [
                _row(each, scores.get((run.run_id, each.turn)), names[run.model_id])
                for each in turns
            ]
            failure = failed.get(run.run_id)
            if failure is not None and not (turns and turns[-1].last_turn):
                failures.append(_failed(run, failure))
    return RunResult(
        experiment_id=experiment.experiment_id,
        comparison=comparison,
        responses=tuple(responses),
        failures=tuple(failures),
        progress=progress,
        dead_letters=dead_letters,
    )


async def _scores(
    store: Aggregates, experiment: Experiment
) -> Mapping[tuple[str, int], ScoredResponse]:
    """Return the scores under the experiment's profile, by run and turn."""
    return {
        (score.run.run_id, score.turn): score
        async for page in store.score_rows(experiment.experiment_id)
        for score in page
        if score.profile == experiment.manifest.profile
    }


async def _failures(store: Aggregates, experiment: Experiment) -> Mapping[str, RunFailure]:
    """Return the failure of each run, the one at its highest turn."""
    failures: dict[str, RunFailure] = {}
    async for page in store.failure_rows(experiment.experiment_id):
        for failure in page:
            known = failures.get(failure.run.run_id)
            if known is None or known.turn <= failure.turn:
                failures[failure.run.run_id] = failure
    return failures


def _row(response: Response, score: ScoredResponse | None, model_name: str) -> ResponseRow:
    run, cost = response.run, response.cost_nanodollars
    return ResponseRow(
        model=run.model_id,
        scenario=run.scenario_id,
        dimension=run.dimension,
        repeat=run.repeat,
        turn=response.turn,
        model_name=model_name,
        student_message=response.student_message,
        text=response.text,
        status=str((score or response).status),
        vectors=None if score is None else score.vectors,
        overall=None if score is None else score.overall,
        cost_usd=None if cost is None else cost / NANODOLLARS_PER_DOLLAR,
        latency_ms=response.latency_ms,
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
    )


def _failed(run: Run, failure: RunFailure) -> FailedRun:
    return FailedRun(
        model=run.model_id,
        scenario=run.scenario_id,
        dimension=run.dimension,
        repeat=run.repeat,
        turn=failure.turn,
        kind=failure.kind,
        message=failure.message,
        attempts=failure.attempts,
    )


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
    socratic-bench.db in the working folder. `on_progress` is called a few times a second, and at
    the end; without it a notebook or a terminal shows a bar. `fresh` reuses no answers of other
    experiments, `retry_failed` asks failed runs once more.

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
        with _plain_log(), _progress_bar() as bar:
            tell = on_progress or bar
            listener = None if tell is None else _Listener(benchmark, tell)
            result = await _executed(benchmark)
        if listener is not None and listener.error is not None:
            raise listener.error
        outcome = await outcome_of(benchmark, prospect, result, read.weighted_profile)
        return await result_of(
            benchmark.store,
            result.experiment,
            outcome.comparison,
            result.progress,
            result.dead_letters,
        )


async def load(experiment: str, *, store: str | Path | None = None) -> RunResult:
    """Return a stored experiment as `run` would; calls no model and changes nothing.

    `experiment` is an id or a name, as in `socratic-bench leaderboard --experiment`; `store` is as
    in `run`. Raises UnknownExperiment, AmbiguousExperiment, NoScores, InvalidSettings for a missing
    database file, StoreError.
    """
    async with readable_store(_address(store)) as opened:
        found = await find_experiment(opened, experiment)
        comparison = await model_comparison(opened, found.experiment_id)
        progress = await opened.progress(found.experiment_id)
        return await result_of(opened, found, comparison, progress)


@contextmanager
def _plain_log() -> Iterator[None]:
    """Print the services' warnings as plain lines, unless the program configured their log."""
    if structlog.is_configured():
        yield
        return
    warn_in_lines()
    try:
        yield
    finally:
        structlog.reset_defaults()


BAR_WIDTH = 30
"""The characters of the progress bar."""


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], object] | None]:
    """Yield a function that draws a bar; None where nobody watches, as in a pipe."""
    if not (sys.stdout.isatty() or "ipykernel" in sys.modules):
        yield None
        return
    shown = ""

    def draw(progress: Progress) -> None:
        nonlocal shown
        done = BAR_WIDTH * progress.done // max(progress.planned, 1)
        bar = "█" * done + "░" * (BAR_WIDTH - done)
        line = f"\r{bar} {progress.done} of {progress.planned} runs"
        if line != shown:  # a saved notebook keeps every write as an output of its own
            sys.stdout.write(line)
            sys.stdout.flush()
            shown = line

    try:
        yield draw
    except asyncio.CancelledError:
        if shown:
            sys.stdout.write("; the same call continues")
        raise
    finally:
        if shown:
            sys.stdout.write("\n")


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
