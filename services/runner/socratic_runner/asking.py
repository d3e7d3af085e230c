"""One question to one model: whatever comes of it is a reply or a failure with a class."""

from __future__ import annotations

import asyncio

import structlog
from structlog.contextvars import bound_contextvars

from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import FailureKind, Question, Reply
from socratic_runner.call_observing import CallObserver
from socratic_runner.clients import Tutor

log = structlog.get_logger(__name__)

FAR_TOO_DEAR = 10
"""A reply that costs so many times what its call can cost at most was miscounted."""


async def ask(
    tutor: Tutor, question: Question, most: int, observer: CallObserver
) -> Reply | ModelCallFailed:
    """What came of one call, which may cost `most` nanodollars; raises nothing of its own."""
    begun_at = _now()
    result = await _ask_in_time(tutor, question, most)
    seconds = _now() - begun_at
    if isinstance(result, Reply):
        cost = tutor.cost_nanodollars(result.usage)
        observer.replied(tutor.model.id, seconds, result.usage, cost)
    else:
        observer.failed(tutor.model.id, seconds, result.kind)
    return result


async def _ask_in_time(tutor: Tutor, question: Question, most: int) -> Reply | ModelCallFailed:
    if tutor.client.answers_at_once:
        return _checked(await _ask(tutor, question), tutor, most)
    try:
        with bound_contextvars(**_about(question)):
            async with asyncio.timeout(tutor.deadline):
                return _checked(await _ask(tutor, question), tutor, most)
    except TimeoutError:
        message = f"no answer within {tutor.deadline:g} s"
        return ModelCallFailed(FailureKind.TIMEOUT, message, retryable=True)


async def _ask(tutor: Tutor, question: Question) -> Reply | ModelCallFailed:
    try:
        reply = await tutor.client.ask(question)
        for text in (reply.text, reply.stop_reason, reply.model_version):
            (text or "").encode()
    except ModelCallFailed as failure:
        return failure
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return ModelCallFailed(FailureKind.UNKNOWN, "its client gave the call up", retryable=True)
    except UnicodeEncodeError as error:
        message = f"the reply is no valid Unicode text: {error.reason}"
        return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=False)
    except Exception as error:
        log.exception("model client failed", model=question.run.model_id, **_about(question))
        message = f"{type(error).__name__}: {error}"
        return ModelCallFailed(FailureKind.UNKNOWN, message, retryable=False)
    return reply


def _checked(result: Reply | ModelCallFailed, tutor: Tutor, most: int) -> Reply | ModelCallFailed:
    """The result, unless its token counts cannot be true."""
    if isinstance(result, ModelCallFailed) or not most:
        return result
    cost = tutor.cost_nanodollars(result.usage)
    if cost is None or cost <= FAR_TOO_DEAR * most:
        return result
    tokens = f"{result.usage.input_tokens} tokens read and {result.usage.output_tokens} written"
    message = f"the provider counted {tokens}, more than the call can have taken"
    return ModelCallFailed(FailureKind.MALFORMED_REPLY, message, retryable=False)


def _about(question: Question) -> dict[str, str | int]:
    """What a log line about this call is found by."""
    run = question.run
    return {
        "run_id": run.run_id,
        "correlation_id": run.experiment_id,
        "turn": question.turn,
    }


def _now() -> float:
    return asyncio.get_running_loop().time()
