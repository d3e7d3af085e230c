"""The results of a benchmark, row by row, for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run, RunFailure, batches
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.extras import require_package
from socratic_bench.ports.broker import DeadLetter
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.reporting.leaderboard.comparison import ModelComparison
from socratic_cli.execution.benchmark_run import Outcome

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
    text: str
    status: str
    vectors: Mapping[str, float | None] | None
    """0.0 to 1.0 each, unrounded; None for a vector that does not apply; all None: unscored."""

    overall: float | None
    """0.0 to 1.0, unrounded; None: unscored, which is not zero."""

    cost_usd: float | None
    """None: unknown, which is not zero."""

    latency_ms: int | None


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


@dataclass(frozen=True, slots=True)
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
    """Messages that no handler could handle; their runs are not done."""

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


async def result_of(store: RunResultStore, outcome: Outcome) -> RunResult:
    """Read all results of a benchmark's experiment into memory."""
    experiment = outcome.result.experiment
    scores = await _scores(store, experiment)
    responses: list[ResponseRow] = []
    failures: list[FailedRun] = []
    failed = await _failures(store, experiment)
    for batch in batches(experiment.runs(), RUNS_TOGETHER):
        stored = await store.responses([run.run_id for run in batch])
        for run in batch:
            turns = stored.get(run.run_id, ())
            responses += [_row(each, scores.get((run.run_id, each.turn))) for each in turns]
            failure = failed.get(run.run_id)
            if failure is not None and not (turns and turns[-1].last_turn):
                failures.append(_failed(run, failure))
    return RunResult(
        experiment_id=experiment.experiment_id,
        comparison=outcome.comparison,
        responses=tuple(responses),
        failures=tuple(failures),
        progress=outcome.result.progress,
        dead_letters=outcome.result.dead_letters,
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


def _row(response: Response, score: ScoredResponse | None) -> ResponseRow:
    run, cost = response.run, response.cost_nanodollars
    return ResponseRow(
        model=run.model_id,
        scenario=run.scenario_id,
        dimension=run.dimension,
        repeat=run.repeat,
        turn=response.turn,
        text=response.text,
        status=str((score or response).status),
        vectors=None if score is None else score.vectors,
        overall=None if score is None else score.overall,
        cost_usd=None if cost is None else cost / NANODOLLARS_PER_DOLLAR,
        latency_ms=response.latency_ms,
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
