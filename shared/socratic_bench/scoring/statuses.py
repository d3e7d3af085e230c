"""The status of a response. Unscored is not zero."""

from __future__ import annotations

from enum import StrEnum


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
