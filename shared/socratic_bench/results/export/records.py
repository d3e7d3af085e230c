"""The records of exported tables: their columns, and how each is made of results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.results.leaderboard.answer_sentences import told_of
from socratic_bench.results.scenarios import ScenarioAnalysis
from socratic_bench.results.transcripts import Transcript, Turn
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__

Record = Mapping[str, Any]
"""A row: a value for each column, in their order; None is unknown, never zero."""


class Kind(StrEnum):
    """What the values of a column are."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    MOMENT = "moment"
    """A point in time, as ISO 8601 with its offset from UTC."""


class ExportColumn(NamedTuple):
    """A column. Every column may hold None."""

    name: str
    kind: Kind


def texts(*names: str) -> tuple[ExportColumn, ...]:
    return tuple(ExportColumn(name, Kind.TEXT) for name in names)


def integers(*names: str) -> tuple[ExportColumn, ...]:
    return tuple(ExportColumn(name, Kind.INTEGER) for name in names)


def numbers(names: Iterable[str]) -> tuple[ExportColumn, ...]:
    return tuple(ExportColumn(name, Kind.NUMBER) for name in names)


RUN: Final = (
    *texts("run_id", "model_id", "scenario_id", "dimension"),
    *integers("repeat", "turn"),
)
"""The columns that say which turn of which run a record is about."""

ORIGIN: Final = (
    *texts("experiment_id", "occasion"),
    ExportColumn("created_at", Kind.MOMENT),
    *texts("conditions", "profile", "version"),
)
"""The columns that say where a record comes from. Every table has them after its own; those of runs
under pressure follow."""


def origin(experiment: Experiment, profile: str | None) -> Record:
    """Return the values of the columns ORIGIN; `profile` is None for a table without scores."""
    return {
        "experiment_id": experiment.experiment_id,
        "occasion": experiment.occasion,
        "created_at": experiment.created_at.isoformat(),
        "conditions": experiment.conditions_id,
        "profile": profile,
        "version": __version__,
    }


_SAID: Final = (
    *texts("student_message", "text"),
    *integers("input_tokens", "visible_output_tokens", "reasoning_tokens", "latency_ms"),
    *numbers(["cost_usd"]),
    *texts("stop_reason", "model_version", "routed_to", "reply_id", "reasoning", "notes"),
)


def response_columns(vectors: Sequence[str]) -> tuple[ExportColumn, ...]:
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
            **_turn_of(transcript.run, turn.response.turn),
            "status": turn.score.status.value,
            "error_kind": turn.response.error_kind,
            **{name: turn.score[name] for name in (*vectors, OVERALL)},
            **_said(turn),
            **comes_from,
        }
    failure = _unanswered_failure(transcript)
    if failure is not None:
        yield {
            **_turn_of(transcript.run, failure.turn),
            "status": "error",
            "error_kind": failure.kind,
            **dict.fromkeys((*vectors, OVERALL)),
            **{column.name: None for column in _SAID},
            **comes_from,
        }


def _turn_of(run: Run, turn: int) -> Record:
    """Return the values of the columns RUN."""
    return {
        "run_id": run.run_id,
        "model_id": run.model_id,
        "scenario_id": run.scenario_id,
        "dimension": run.dimension,
        "repeat": run.repeat,
        "turn": turn,
    }


def _dollars(response: Response) -> float | None:
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
        _dollars(response),
        response.stop_reason,
        response.model_version,
        response.routed_to,
        response.reply_id,
        response.reasoning,
        "; ".join(told_of(response)) or None,
    )
    return {column.name: value for column, value in zip(_SAID, values, strict=True)}


def _unanswered_failure(transcript: Transcript) -> RunFailure | None:
    """Return the failure of a run at a turn without a response; None without one."""
    failure = transcript.failure
    if failure is None or any(each.response.turn == failure.turn for each in transcript.turns):
        return None
    return failure


_ANSWER: Final = (
    *texts("student_message", "text"),
    *integers("input_tokens", "visible_output_tokens", "reasoning_tokens"),
    *integers("latency_ms", "first_token_ms"),
    *numbers(["cost_usd"]),
    *texts("stop_reason", "model_version", "routed_to"),
    ExportColumn("recorded_at", Kind.MOMENT),
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
            **_turn_of(each.run, each.turn),
            "status": each.status.value,
            "error_kind": each.error_kind,
            "error_message": None,
            "attempts": each.attempts,
            **_answer(each),
            **comes_from,
        }
    if failure is not None and all(each.turn != failure.turn for each in responses):
        yield {
            **_turn_of(failure.run, failure.turn),
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
        _dollars(response),
        response.stop_reason,
        response.model_version,
        response.routed_to,
        response.recorded_at.isoformat(),
        response.adopted_from,
    )
    return {column.name: value for column, value in zip(_ANSWER, values, strict=True)}


SCENARIO_COLUMNS: Final = (
    *texts("scenario_id", "dimension", "title", "persona", "aim", "prompt", "follow_ups"),
    *integers("turns"),
    *numbers(["mean", "interval_low", "interval_high", "discrimination"]),
    *integers("models", "runs", "scored_responses", "responses"),
    *ORIGIN,
)


def scenario_records(analysis: ScenarioAnalysis, experiment: Experiment) -> Iterator[Record]:
    """Yield a record for each scenario, in the plan's order.

    `follow_ups` is a JSON list of the student's later messages, as text: a table has no lists.
    """
    comes_from = origin(experiment, analysis.profile)
    for each in analysis.scenarios:
        first, *later = each.student_messages
        low, high = each.interval or (None, None)
        yield {
            "scenario_id": each.scenario_id,
            "dimension": each.dimension,
            "title": each.title,
            "persona": each.persona,
            "aim": each.aim,
            "prompt": first,
            "follow_ups": json.dumps(later, ensure_ascii=False) if later else None,
            "turns": each.turns,
            "mean": each.mean,
            "interval_low": low,
            "interval_high": high,
            "discrimination": each.discrimination,
            "models": each.models,
            "runs": each.runs,
            "scored_responses": each.scored_responses,
            "responses": each.responses,
            **comes_from,
        }
