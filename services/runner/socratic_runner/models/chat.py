"""A conversation as chat messages, a role and a text each, and the counts of its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from socratic_bench.ports.models import Question
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.score import MOST_TOKENS


def chat(question: Question, examples: Iterable[EarlierTurn] = ()) -> list[dict[str, str]]:
    """Return the earlier turns, `examples` first, and the student's new message."""
    messages = []
    for turn in (*examples, *question.earlier_turns):
        messages.append({"role": "user", "content": turn.student})
        messages.append({"role": "assistant", "content": turn.tutor})
    messages.append({"role": "user", "content": question.student_message})
    return messages


def system_message(question: Question) -> dict[str, str]:
    """Return the system prompt as the first message."""
    return {"role": "system", "content": question.system_prompt}


_MOST: Final = MOST_TOKENS // 4
"""The most tokens of one count: a sum of counts then stays in range too."""


def count_in(value: Any) -> int | None:
    """Return a number of tokens; None for an impossible value."""
    return value if type(value) is int and 0 <= value <= _MOST else None
