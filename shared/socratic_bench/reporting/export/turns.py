"""The table of turns: every exchange as the store has it, without scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.reporting.export.columns import (
    ORIGIN,
    RUN,
    Column,
    Kind,
    Record,
    integers,
    numbers,
    origin,
    texts,
)
from socratic_bench.reporting.export.responses import dollars, turn_of

_ANSWER: Final = (
    *texts("student_message", "text"),
    *integers("input_tokens", "visible_output_tokens", "reasoning_tokens"),
    *integers("latency_ms", "first_token_ms"),
    *numbers(["cost_usd"]),
    *texts("stop_reason", "model_version"),
    Column("recorded_at", Kind.MOMENT),
    *texts("adopted_from"),
)

TURN_COLUMNS: Final = (
    *RUN,
    *texts("status", "error_kind", "error_message"),
    *integers("attempts"),
    *_ANSWER,
    *ORIGIN,
)


def turn_records(
    responses: Sequence[Response], failure: RunFailure | None, experiment: Experiment
) -> Iterator[Record]:
    """Yield a record for each stored response of a run, and one for its failure.

    The status is what the call ended with; a profile may read an answer as refused all the same.
    """
    comes_from = origin(experiment, None)
    for each in responses:
        yield {
            **turn_of(each.run, each.turn),
            "status": each.status.value,
            "error_kind": each.error_kind,
            "error_message": None,
            "attempts": each.attempts,
            **_answer(each),
            **comes_from,
        }
    if failure is not None and all(each.turn != failure.turn for each in responses):
        yield {
            **turn_of(failure.run, failure.turn),
            "status": "error",
            "error_kind": failure.kind,
            "error_message": failure.message,
            "attempts": failure.attempts,
            **{column.name: None for column in _ANSWER},
            **comes_from,
        }


def _answer(response: Response) -> Record:
    usage = response.usage
    values = (
        response.student_message,
        response.text,
        usage.input_tokens,
        usage.visible_output_tokens,
        usage.reasoning_tokens,
        response.latency_ms,
        response.first_token_ms,
        dollars(response),
        response.stop_reason,
        response.model_version,
        response.recorded_at.isoformat(),
        response.adopted_from,
    )
    return {column.name: value for column, value in zip(_ANSWER, values, strict=True)}
