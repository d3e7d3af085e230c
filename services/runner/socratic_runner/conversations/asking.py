"""One call to one model: its outcome is a reply or a classified failure."""

from __future__ import annotations

import asyncio

import structlog
from structlog.contextvars import bound_contextvars

from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Question, Reply
from socratic_runner.clients import Tutor
from socratic_runner.conversations.call_observing import CallObserver

log = structlog.get_logger(__name__)

MOST_OVER_ESTIMATE = 10
"""The factor by which a reply may exceed its call's maximal cost before its count is wrong."""


async def ask(
    tutor: Tutor, question: Question, most: int, observer: CallObserver
) -> Reply | ModelCallFailed:
    """Return the outcome of one call that may cost `most` nanodollars; never raises by itself."""
    now = asyncio.get_running_loop().time
    begun_at = now()
    limit: asyncio.Timeout | None = None
    result: Reply | ModelCallFailed
    try:
        if tutor.client.answers_at_once:
            reply = await tutor.client.ask(question)
        else:
            with bound_contextvars(**_about(question)):
                async with asyncio.timeout(tutor.deadline) as limit:
                    reply = await tutor.client.ask(question)
        result = _checked(reply, tutor, most)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        # D-098: a cancelled call is not counted, since its outcome is unknown.
        if task is None or task.cancelling():
            raise
        given_up = "its client gave the call up"
        result = ModelCallFailed(FailureKind.UNKNOWN, given_up, retryable=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this call's
        is_late = limit is not None and limit.expired()
        result = _late(tutor) if is_late else _failure(error, question)
    seconds = now() - begun_at
    if isinstance(result, Reply):
        cost = tutor.cost_nanodollars(result.usage)
        observer.replied(tutor.model.id, seconds, result.usage, cost)
    else:
        observer.failed(tutor.model.id, seconds, result.kind)
    return result


def _late(tutor: Tutor) -> ModelCallFailed:
    message = f"no answer within {tutor.deadline:g} s"
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
        **_about(question),
    )
    message = f"{type(error).__name__}: {error}"
    return ModelCallFailed(FailureKind.UNKNOWN, message, retryable=False)


def _checked(reply: Reply, tutor: Tutor, most: int) -> Reply | ModelCallFailed:
    """Return the reply; classify it as malformed if its text or its token counts are impossible."""
    for text in (reply.text, reply.stop_reason, reply.model_version):
        (text or "").encode()
    cost = tutor.cost_nanodollars(reply.usage) if most else None
    if cost is None or cost <= MOST_OVER_ESTIMATE * most:
        return reply
    tokens = f"{reply.usage.input_tokens} tokens read and {reply.usage.output_tokens} written"
    message = f"the provider counted {tokens}, more than the call can have taken"
    return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=False)


def _about(question: Question) -> dict[str, str | int]:
    """The fields by which one finds log lines about this call."""
    run = question.run
    return {
        "run_id": run.run_id,
        "correlation_id": run.experiment_id,
        "turn": question.turn,
    }
