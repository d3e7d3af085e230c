"""The input of a scorer: one response of a tutor, and the conversation before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from socratic_bench.scoring.statuses import Status


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """One turn before the scored one."""

    student: str
    """The student's message."""

    tutor: str
    """The tutor's response."""

    visible_tokens: int | None = None
    """The provider's count of the tutor's visible output tokens; None: unknown."""

    status: Status | None = None
    """The status of the tutor's response; None: unknown."""


class Exchange(NamedTuple):
    """One response of a tutor, with all that a profile may measure."""

    text: str
    """The tutor's response."""

    visible_tokens: float | None = None
    """The provider's count of visible output tokens (without reasoning); None if it gave none."""

    student_message: str = ""
    """The student's message in this turn."""

    earlier_turns: tuple[EarlierTurn, ...] = ()
    """The turns before this one, oldest first."""

    grade: float | None = None
    """A model's grade of the response, 0.0 to 1.0, for profiles that need one; None: no grade."""
