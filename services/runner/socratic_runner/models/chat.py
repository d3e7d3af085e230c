"""A conversation as chat messages: a role and a text each."""

from __future__ import annotations

from collections.abc import Iterable

from socratic_bench.ports.models import Question
from socratic_bench.scoring.exchange import EarlierTurn


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
