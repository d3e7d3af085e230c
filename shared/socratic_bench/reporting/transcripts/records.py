"""The responses of an experiment as flat records, for spreadsheets and programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.run import Run
from socratic_bench.reporting.leaderboard.csv_text import spreadsheet_text
from socratic_bench.reporting.transcripts.run_transcripts import (
    Transcript,
    TranscriptStore,
    Turn,
    transcripts,
)
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.version import __version__

Record = Mapping[str, Any]

BYTE_ORDER_MARK: Final = "\ufeff"
"""The first character of a CSV, by which Excel knows UTF-8."""


async def records(
    store: TranscriptStore, experiment: Experiment, profile: str | None = None
) -> AsyncIterator[Record]:
    """Yield one record for each response and each failed run, all with the same keys, in order.

    Scores are by the experiment's own profile or by `profile`, unrounded, and computed again from
    the stored responses; None is unknown, never zero. Raises NoScores.
    """
    shown = profile or experiment.manifest.profile
    vectors = profile_named(shown).vectors
    async for transcript in transcripts(store, experiment, profile=profile):
        for record in _of_transcript(transcript, vectors, experiment, shown):
            yield record


async def as_json_lines(found: AsyncIterator[Record]) -> AsyncIterator[str]:
    """Yield each record as one line of JSON."""
    async for record in found:
        yield json.dumps(record, ensure_ascii=False) + "\n"


async def as_csv(found: AsyncIterator[Record]) -> AsyncIterator[str]:
    """Yield the records as CSV that Excel reads: a heading, then a row for each.

    A text that a spreadsheet would execute as a formula has an apostrophe before it.
    """
    is_first = True
    async for record in found:
        heading = BYTE_ORDER_MARK + _row(list(record)) if is_first else ""
        yield heading + _row([spreadsheet_text(value) for value in record.values()])
        is_first = False


FORMATS: Final[Mapping[str, Callable[[AsyncIterator[Record]], AsyncIterator[str]]]] = {
    "jsonl": as_json_lines,
    "csv": as_csv,
}


def _row(values: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue()


def _of_transcript(
    transcript: Transcript, vectors: Sequence[str], experiment: Experiment, profile: str
) -> Iterator[Record]:
    origin = _origin(experiment, profile)
    for turn in transcript.turns:
        figures = {name: turn.score[name] for name in (*vectors, OVERALL)}
        yield {
            **_identity(transcript.run, turn.response.turn),
            "status": turn.score.status.value,
            "error_kind": turn.response.error_kind,
            **figures,
            **_said(turn),
            **origin,
        }
    failure = transcript.failure
    if failure is not None and all(t.response.turn != failure.turn for t in transcript.turns):
        yield {
            **_identity(transcript.run, failure.turn),
            "status": "error",
            "error_kind": failure.kind,
            **dict.fromkeys((*vectors, OVERALL)),
            **dict.fromkeys(_SAID),
            **origin,
        }


def _identity(run: Run, turn: int) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "model_id": run.model_id,
        "scenario_id": run.scenario_id,
        "dimension": run.dimension,
        "repeat": run.repeat,
        "turn": turn,
    }


_SAID: Final = (
    "student_message",
    "text",
    "input_tokens",
    "visible_output_tokens",
    "reasoning_tokens",
    "latency_ms",
    "cost_usd",
    "stop_reason",
)


def _said(turn: Turn) -> dict[str, Any]:
    response = turn.response
    cost = response.cost_nanodollars
    values = (
        response.student_message,
        response.text,
        response.usage.input_tokens,
        response.usage.visible_output_tokens,
        response.usage.reasoning_tokens,
        response.latency_ms,
        None if cost is None else cost / NANODOLLARS_PER_DOLLAR,
        response.stop_reason,
    )
    return dict(zip(_SAID, values, strict=True))


def _origin(experiment: Experiment, profile: str) -> dict[str, Any]:
    return {
        "experiment_id": experiment.experiment_id,
        "occasion": experiment.occasion,
        "created_at": experiment.created_at.isoformat(),
        "conditions": experiment.conditions_id,
        "profile": profile,
        "version": __version__,
    }
