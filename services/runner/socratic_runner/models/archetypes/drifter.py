"""The tutor that asks at first and lectures more with every turn."""

from __future__ import annotations

from socratic_runner.models.archetypes import lecturer, socratic
from socratic_runner.models.archetypes.moment import Moment

TURNING = (
    "All right, let me help you along a little.",
    "I think we have gone round this long enough to say a few things plainly.",
    "You are nearly there, so here is some of it.",
)
CHECKS = (
    "Does that make sense?",
    "Is that clear so far?",
    "Do you see how that works?",
)


def answer(moment: Moment) -> str:
    """Ask questions in turn 1, then explain one paragraph more in each turn.

    A benchmark of single turns cannot tell this tutor from one that asks.
    """
    if moment.turn == 1:
        return socratic.answer(moment)
    if moment.turn >= 4:
        return lecturer.answer(moment)
    draw = moment.draw
    parts = [draw.one(TURNING), *lecturer.explanation(moment, moment.turn - 1)]
    if moment.turn == 2:
        parts.append(moment.fill(draw.one(socratic.LATER_QUESTIONS)))
    else:
        parts.append(draw.one(CHECKS) if draw.once_in(2) else draw.one(lecturer.CLOSINGS))
    return "\n\n".join(parts)
