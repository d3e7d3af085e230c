"""Stores the answers of a file of another tool, under the plan that was made of the file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.run import MOST_MILLISECONDS, Run, RunFailure, batches
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import FailureKind
from socratic_bench.ports.models import Reply
from socratic_bench.ports.stores.responses import NO_LEASE, RecordedFailure, Responses
from socratic_bench.scoring.exchange import UNFINISHED, EarlierTurn, Status, effective_status
from socratic_bench.scoring.score import MOST_TOKENS
from socratic_cli.importing import FilePlan, Positions, model_id
from socratic_cli.reading.logged_runs import MOST_TURNS_KEPT, LoggedRun, LoggedTurn, Unread, clean
from socratic_cli.reading.logs import Log
from socratic_runner.conversations.conversation import seen
from socratic_runner.models.http.keys import hide

AT_ONCE: Final = 100
"""Runs that are stored at a time."""


def _clean(turn: EarlierTurn) -> EarlierTurn:
    return replace(turn, student=clean(turn.student), tutor=clean(turn.tutor))


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is to be stored of some runs."""

    responses: list[Response]
    failures: list[RecordedFailure]


async def store_answers(log: Log, plan: FilePlan, store: Responses, now: datetime) -> None:
    """Store the answers of a log, and a failure for each planned run that it lacks.

    What is stored already stays: an interrupted import is repeated from the start.
    """
    by_model = {
        model: (experiment, model)
        for experiment in plan.experiments
        for model in experiment.manifest.models_by_id
    }
    missing = {
        experiment.experiment_id: {run.run_id: run for run in experiment.runs()}
        for experiment in plan.experiments
    }
    rows = _stored_rows(log, plan, by_model, missing, now)
    while batch := await asyncio.to_thread(lambda: list(islice(rows, AT_ONCE))):
        responses = [each for one in batch for each in one.responses]
        await store.record(responses, [NO_LEASE] * len(responses))
        await store.record_failures([each for one in batch for each in one.failures])
    for experiment in plan.experiments:
        for absent in batches(missing[experiment.experiment_id].values(), AT_ONCE):
            await store.record_failures([_absent(plan, experiment, run) for run in absent])


def _stored_rows(
    log: Log,
    plan: FilePlan,
    by_model: Mapping[str, tuple[Experiment, str]],
    missing: Mapping[str, dict[str, Run]],
    now: datetime,
) -> Iterator[_Stored]:
    positions = Positions()
    for row in log.rows():
        if isinstance(row, Unread) or (place := positions.of(row)) is None:
            continue
        experiment, model = by_model[model_id(plan.facts, place.model)]
        scenario = experiment.manifest.scenarios_by_id[place.scenario]
        run = experiment.run(model, scenario, place.repeat)
        missing[experiment.experiment_id].pop(run.run_id, None)
        yield _stored(experiment, scenario, run, row, row.at or plan.facts.created or now)


def _stored(
    experiment: Experiment, scenario: Scenario, run: Run, row: LoggedRun, at: datetime
) -> _Stored:
    responses: list[Response] = []
    profile = experiment.manifest.profile
    turns = row.turns[:MOST_TURNS_KEPT]
    for number, turn in enumerate(turns, start=1):
        last = number == len(turns)
        responses.append(_response(scenario, run, turn, row, responses, at, profile, last=last))
    if turns:
        return _Stored(responses, [])
    message = hide(clean(row.error or "the file has no answer"), None)
    return _Stored([], [_failed(run, profile, FailureKind.UNKNOWN, message, attempts=1)])


def _absent(plan: FilePlan, experiment: Experiment, run: Run) -> RecordedFailure:
    message = f"{plan.source} has no repeat {run.repeat} of this sample"
    profile = experiment.manifest.profile
    return _failed(run, profile, FailureKind.NOT_FOUND, message, attempts=0)


def _failed(
    run: Run, profile: str, kind: FailureKind, message: str, *, attempts: int
) -> RecordedFailure:
    failure = RunFailure(
        run=run, turn=1, profile=profile, kind=kind, message=message, attempts=attempts
    )
    return RecordedFailure(failure, 0)


def _response(
    scenario: Scenario,
    run: Run,
    turn: LoggedTurn,
    row: LoggedRun,
    earlier: Sequence[Response],
    at: datetime,
    profile: str,
    *,
    last: bool,
) -> Response:
    error = row.error
    failed = error is not None or turn.status is Status.ERROR
    reply = Reply(
        text=clean(turn.text),
        status=Status.ERROR if failed else turn.status,
        usage=Usage(
            visible_output_tokens=turn.output_tokens,
            reasoning_tokens=turn.reasoning_tokens,
            input_tokens=turn.input_tokens,
        ),
        latency_ms=min(turn.latency_ms, MOST_MILLISECONDS) if turn.latency_ms is not None else None,
        stop_reason=turn.stop_reason,
        model_version=turn.model_version,
        reply_id=turn.reply_id,
        error_kind=UNFINISHED if failed else None,
    )
    visible = seen(reply, earlier, MOST_TOKENS)
    return Response(
        run=run,
        turn=len(earlier) + 1,
        last_turn=last,
        profile=profile,
        student_message=clean(turn.student),
        earlier_turns=(*map(_clean, row.before), *(each.as_earlier_turn for each in earlier)),
        answer_key=scenario.key,
        text=visible.text,
        status=effective_status(reply.status, visible.text),
        error_kind=reply.error_kind,
        usage=visible.usage,
        latency_ms=reply.latency_ms,
        stop_reason=hide(clean(error), None)[:200] if error else reply.stop_reason,
        model_version=reply.model_version,
        reply_id=reply.reply_id,
        reasoning=visible.reasoning,
        notes=visible.notes,
        recorded_at=at,
    )
