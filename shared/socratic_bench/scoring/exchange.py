"""The input of a scorer: a tutor's response with its status, and the conversation before."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """How a response ended."""

    OK = "ok"
    """The tutor finished its answer."""
    TRUNCATED = "truncated"
    """The token limit cut the answer off."""
    REFUSED = "refused"
    """The tutor, or a filter before it, declined to answer."""
    EMPTY = "empty"
    """The tutor returned nothing but white space."""
    ERROR = "error"
    """No response came, or an unfinished one; `error_kind` says which."""


UNGRADED = "ungraded"
"""The `error_kind` of a response that its profile needs a grade for, and whose grading failed."""

UNFINISHED = "unfinished"
"""The kind of ERROR of an answer whose stop reason is not known to end a finished one. The store
keeps the answer: it is paid for, and a later version may know the reason."""


def effective_status(status: Status, text: str) -> Status:
    """Return `status`, or EMPTY for an answer without text."""
    if (status is Status.OK or status is Status.TRUNCATED) and (not text or text.isspace()):
        return Status.EMPTY
    return status


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

    status: Status = Status.OK
    """How the response ended."""

    key: tuple[str, ...] = ()
    """The scenario's final answer, in each form that gives it away; empty: it has none."""
