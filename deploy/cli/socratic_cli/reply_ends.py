"""How a stored reply ended, by the fields that APIs and evaluation tools write beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from socratic_bench.scoring.statuses import Status
from socratic_runner.models.stop_reasons import Ended, how_it_ended

_REASONS: Final = ("finish_reason", "finishReason", "stop_reason", "stopReason")
_UNFINISHED: Final = {
    "failed": Status.ERROR,
    "error": Status.ERROR,
    "cancelled": Status.ERROR,
    "in_progress": Status.ERROR,
    "incomplete": Status.TRUNCATED,
}
"""Words of `status` beside a reply that did not finish."""


def status_of(value: Mapping[str, Any]) -> Status | None:
    """Return the status that the fields of a record or a reply state; None if they state none."""
    if value.get("error"):
        return Status.ERROR
    if value.get("refusal") or value.get("isRefusal") is True:
        return Status.REFUSED
    for name in _REASONS:
        if isinstance(reason := value.get(name), str) and reason:
            ended = how_it_ended(reason)
            return ended.status if isinstance(ended, Ended) else Status.ERROR
    status = value.get("status")
    return _UNFINISHED.get(status) if isinstance(status, str) else None
