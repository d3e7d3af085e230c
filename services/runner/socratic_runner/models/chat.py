"""A conversation as chat messages, a role and a text each, and the counts of its tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from socratic_bench.ports.models import Question
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.score import MOST_TOKENS


def chat(
    question: Question, examples: Iterable[EarlierTurn] = (), *, system_role: str | None = None
) -> list[dict[str, str]]:
    """Return the earlier turns, `examples` first, and the student's new message.

    `system_role` adds the system prompt as the first message; with the role `user` it stands before
    the student's first message. Many servers refuse an empty message, and two messages of one
    speaker in a row. Where the tutor said nothing, the student's messages become one.
    """
    messages: list[dict[str, str]] = []

    def say(role: str, text: str) -> None:
        if not text.strip():
            return
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += f"\n\n{text}"
        else:
            messages.append({"role": role, "content": text})

    if system_role is not None:
        say(system_role, question.system_prompt)
    for turn in (*examples, *question.earlier_turns):
        say("user", turn.student)
        say("assistant", turn.tutor)
    say("user", question.student_message)
    return messages


_MOST: Final = MOST_TOKENS // 4
"""The most tokens of one count: a sum of counts then stays in range too."""


def count_in(value: Any) -> int | None:
    """Return a number of tokens; None for an impossible value."""
    return value if type(value) is int and 0 <= value <= _MOST else None
