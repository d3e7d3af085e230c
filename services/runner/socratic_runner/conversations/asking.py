"""One call to one model: its outcome is a reply or a classified failure."""

from __future__ import annotations

import asyncio

import structlog

from socratic_bench.concurrency.deadlines import ThawingTimeout
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Question, Reply
from socratic_runner.conversations.call_outcomes import CallObserver
from socratic_runner.model_pool import CalledModel

log = structlog.get_logger(__name__)

MOST_OVER_ESTIMATE = 10
"""The factor by which a reply may exceed its call's maximal cost before its count is wrong."""


async def ask(
    model: CalledModel,
    question: Question,
    most: int,
    observer: CallObserver,
    deadline: ThawingTimeout,
) -> Reply | ModelCallFailed:
    """Return the outcome of one call that may cost `most` nanodollars; never raises by itself.

    The call ends at `deadline`, which nobody has entered yet.
    """
    now = asyncio.get_running_loop().time
    begun_at = now()
    result: Reply | ModelCallFailed
    try:
        async with deadline:
            reply = await model.client.ask(question)
        result = checked(reply, model, most)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        # A cancelled call is not counted, since its outcome is unknown.
        if task is None or task.cancelling():
            raise
        given_up = "its client gave the call up"
        result = ModelCallFailed(FailureKind.UNKNOWN, given_up, retryable=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this call's
        result = _late(model) if deadline.expired() else _failure(error, question)
    note_outcome(model, result, now() - begun_at, observer)
    return result


def note_outcome(
    model: CalledModel, result: Reply | ModelCallFailed, seconds: float, observer: CallObserver
) -> None:
    """Tell the observer of an ended call."""
    if isinstance(result, Reply):
        cost = model.cost_nanodollars(result.usage)
        observer.replied(model.entry.id, seconds, result.usage, cost)
    else:
        observer.failed(model.entry.id, seconds, result.kind)


def _late(model: CalledModel) -> ModelCallFailed:
    message = (
        f"no answer within {model.deadline:g} s; if its answers take longer, raise "
        "limits.timeout_seconds"
    )
    return ModelCallFailed(FailureKind.TIMEOUT, message, retryable=True)


def _failure(error: Exception, question: Question) -> ModelCallFailed:
    """Classify an error that a client raised."""
    if isinstance(error, ModelCallFailed):
        return error
    if isinstance(error, UnicodeEncodeError):
        message = f"the reply is not valid Unicode text: {error.reason}"
        return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=False)
    log.error(
        "model client failed",
        exc_info=error,
        model=question.run.model_id,
        **log_fields(question),
    )
    message = f"{type(error).__name__}: {error}"
    return ModelCallFailed(FailureKind.UNKNOWN, message, retryable=False)


def checked(reply: Reply, model: CalledModel, most: int) -> Reply | ModelCallFailed:
    """Return the reply; classify it as malformed if its text or its token counts are impossible."""
    for text in (reply.text, reply.stop_reason, reply.model_version, reply.routed_to):
        (text or "").encode()
    cost = model.cost_nanodollars(reply.usage) if most else None
    if cost is None or cost <= MOST_OVER_ESTIMATE * most:
        return reply
    tokens = f"{reply.usage.input_tokens} tokens read and {reply.usage.output_tokens} written"
    message = f"the provider counted {tokens}, more than the call can have taken"
    return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=False)


def log_fields(question: Question) -> dict[str, str | int]:
    """Return the fields by which one finds log lines about a call."""
    run = question.run
    return {
        "run_id": run.run_id,
        "correlation_id": run.experiment_id,
        "turn": question.turn,
    }
