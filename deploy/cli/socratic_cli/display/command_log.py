"""The log of a command, on standard error: warnings in a person's words."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict

from socratic_bench.consuming.waits import WAITING_FOR_STORE, WORK_WAITS
from socratic_cli.display.terminal import excerpt

SAYINGS = 50
"""The most different log lines; further ones are suppressed."""

LONGEST = 1_000
"""Characters of a line at most."""

TOLD_OTHERWISE = {"model stopped", WORK_WAITS, WAITING_FOR_STORE}
"""Events that `run` reports in sentences of its own."""


def log_to_standard_error() -> None:
    """Print warnings and worse."""
    # A driver's warnings, such as a closed channel, help no user.
    logging.getLogger().setLevel(logging.ERROR)
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    warn_in_lines()


def warn_in_lines() -> None:
    """Print the services' warnings as plain lines, each once."""
    structlog.configure(
        processors=[
            _without_what_the_progress_tells,
            _named_error,
            _Once(),
            _as_a_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _without_what_the_progress_tells(_logger: object, _method: str, event: EventDict) -> EventDict:
    if event["event"] in TOLD_OTHERWISE:
        raise structlog.DropEvent
    return event


def _named_error(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Show an exception as its name and message: a traceback helps no user."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["error"] = f"{type(error).__name__}: {error}"
    return event


def _as_a_line(_logger: object, method: str, event: EventDict) -> str:
    """Return a line such as "Warning: recorded line skipped (file: a.jsonl, line: 1)"."""
    name = event.pop("event")
    details = ", ".join(f"{key}: {value}" for key, value in event.items())
    return excerpt(f"{method.capitalize()}: {name}" + (f" ({details})" if details else ""), LONGEST)


class _Once:
    """Logs an equal line once, however many runs repeat it."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def __call__(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        saying = (str(event["event"]), str(event.get("error", event.get("reason", ""))))
        if saying in self._said or len(self._said) >= SAYINGS:
            raise structlog.DropEvent
        self._said.add(saying)
        return event
