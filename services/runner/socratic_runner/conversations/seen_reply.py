"""What a student sees of a reply, whichever client brought it, and the notes on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from socratic_bench.domain.response import Response, Usage
from socratic_bench.ports.models import Reply
from socratic_bench.scoring import answer_notes
from socratic_bench.scoring.length import may_count
from socratic_bench.scoring.statuses import Status
from socratic_bench.scoring.visible_text import VisibleText, read

_CONTEXTS: Final = frozenset(2**power for power in range(11, 18))
"""Sizes of a context that servers choose by themselves, in tokens."""


class SeenReply(NamedTuple):
    """A reply as it is stored and scored."""

    text: str
    reasoning: str | None
    usage: Usage
    notes: tuple[str, ...]


def seen(reply: Reply, earlier: Sequence[Response], max_tokens: int) -> SeenReply:
    """Return what a student sees of a reply after the `earlier` turns of its run."""
    visible = read(reply.text)
    notes = {
        *reply.notes,
        *_notes_of_text(visible),
        *_notes_of_counts(reply, earlier, max_tokens),
    }
    return SeenReply(
        visible.text, visible.reasoning or None, _usage(reply, visible), tuple(sorted(notes))
    )


def _notes_of_text(visible: VisibleText) -> list[str]:
    found = {
        answer_notes.THOUGHTS: bool(visible.reasoning),
        answer_notes.END_TOKENS: visible.end_tokens,
        answer_notes.STUDENT_TURN: visible.student_turn,
        answer_notes.CITATIONS: visible.citations,
    }
    return [note for note, holds in found.items() if holds]


def _notes_of_counts(reply: Reply, earlier: Sequence[Response], max_tokens: int) -> list[str]:
    read_now, written = reply.usage.input_tokens, reply.usage.output_tokens
    notes = []
    if reply.status is Status.OK and written is not None and written >= max_tokens:
        notes.append(answer_notes.AT_LIMIT)
    if read_now is None or not earlier:
        return notes
    read_before = earlier[-1].usage.input_tokens
    full = written is not None and read_now + written in _CONTEXTS
    if full or (read_before is not None and read_now <= read_before):
        notes.append(answer_notes.CONTEXT_CUT)
    return notes


def _usage(reply: Reply, visible: VisibleText) -> Usage:
    """Return the usage without a count that cannot be that of the visible text."""
    usage = reply.usage
    counted = usage.visible_output_tokens
    if counted is None:
        return usage
    if visible.reasoning and usage.reasoning_tokens == 0:
        # The provider counted the thoughts in the text with the answer.
        return Usage(unsplit_output_tokens=counted, input_tokens=usage.input_tokens)
    if not may_count(counted, visible.text):
        return usage.model_copy(update={"visible_output_tokens": None})
    return usage
