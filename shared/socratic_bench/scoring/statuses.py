"""What became of a response, and whether that may be scored. Unscored is not zero."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """What became of a response."""

    OK = "ok"
    """The tutor finished its answer."""
    TRUNCATED = "truncated"
    """The answer was cut off at the token limit."""
    REFUSED = "refused"
    """The tutor, or a filter before it, declined to answer."""
    EMPTY = "empty"
    """The tutor returned nothing but white space."""
    ERROR = "error"
    """No response came, or none that is known to be finished; the kind of error stands beside it.
    """


UNFINISHED = "unfinished"
"""The kind of ERROR of an answer that ended for a reason not known to end a finished one. It is
kept all the same: it was paid for, and a later version may know the reason."""


def effective_status(status: Status, text: str) -> Status:
    """`status`, or EMPTY where an answer said to be there has no text."""
    if (status is Status.OK or status is Status.TRUNCATED) and (not text or text.isspace()):
        return Status.EMPTY
    return status
