"""A conversation in the form that most models are asked in: messages of a role and a text each."""

from __future__ import annotations

from collections.abc import Iterable

from socratic_bench.ports.models import Question
from socratic_bench.scoring.exchange import EarlierTurn


def chat(question: Question, examples: Iterable[EarlierTurn] = ()) -> list[dict[str, str]]:
    """What was said before, `examples` first, and what the student says now."""
    messages = []
    for turn in (*examples, *question.earlier_turns):
        messages.append({"role": "user", "content": turn.student})
        messages.append({"role": "assistant", "content": turn.tutor})
    messages.append({"role": "user", "content": question.student_message})
    return messages


def system_message(question: Question) -> dict[str, str]:
    """What the tutor is told before the student speaks, as the first of the messages."""
    return {"role": "system", "content": question.system_prompt}
