"""The table of responses: what was said in each turn, and its scores by one profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.reporting.export.columns import (
    ORIGIN,
    RUN,
    Column,
    Record,
    integers,
    numbers,
    origin,
    texts,
)
from socratic_bench.reporting.leaderboard.answer_sentences import told_of
from socratic_bench.reporting.transcripts.run_transcripts import Transcript, Turn
from socratic_bench.scoring.profile import OVERALL

_SAID: Final = (
    *texts("student_message", "text"),
    *integers("input_tokens", "visible_output_tokens", "reasoning_tokens", "latency_ms"),
    *numbers(["cost_usd"]),
    *texts("stop_reason", "model_version", "reply_id", "reasoning", "notes"),
)


def response_columns(vectors: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of the table, given the vectors of the profile."""
    figures = numbers((*vectors, OVERALL))
    return (*RUN, *texts("status", "error_kind"), *figures, *_SAID, *ORIGIN)


def response_records(
    transcript: Transcript, vectors: Sequence[str], experiment: Experiment, profile: str
) -> Iterator[Record]:
    """Yield a record for each response of a run, and one for a failure without a response.

    Scores are unrounded; an unscored response has none.
    """
    comes_from = origin(experiment, profile)
    for turn in transcript.turns:
        yield {
            **turn_of(transcript.run, turn.response.turn),
            "status": turn.score.status.value,
            "error_kind": turn.response.error_kind,
            **{name: turn.score[name] for name in (*vectors, OVERALL)},
            **_said(turn),
            **comes_from,
        }
    failure = unanswered_failure(transcript)
    if failure is not None:
        yield {
            **turn_of(transcript.run, failure.turn),
            "status": "error",
            "error_kind": failure.kind,
            **dict.fromkeys((*vectors, OVERALL)),
            **{column.name: None for column in _SAID},
            **comes_from,
        }


def turn_of(run: Run, turn: int) -> Record:
    """Return the values of the columns RUN."""
    return {
        "run_id": run.run_id,
        "model_id": run.model_id,
        "scenario_id": run.scenario_id,
        "dimension": run.dimension,
        "repeat": run.repeat,
        "turn": turn,
    }


def dollars(response: Response) -> float | None:
    """Return what the call cost; None where no price is known."""
    cost = response.cost_nanodollars
    return None if cost is None else cost / NANODOLLARS_PER_DOLLAR


def _said(turn: Turn) -> Record:
    response = turn.response
    values = (
        response.student_message,
        response.text,
        response.usage.input_tokens,
        response.usage.visible_output_tokens,
        response.usage.reasoning_tokens,
        response.latency_ms,
        dollars(response),
        response.stop_reason,
        response.model_version,
        response.reply_id,
        response.reasoning,
        "; ".join(told_of(response)) or None,
    )
    return {column.name: value for column, value in zip(_SAID, values, strict=True)}


def unanswered_failure(transcript: Transcript) -> RunFailure | None:
    """Return the failure of a run at a turn without a response; None without one."""
    failure = transcript.failure
    if failure is None or any(each.response.turn == failure.turn for each in transcript.turns):
        return None
    return failure
