"""Makes the failures of HTTP calls: each has a class, and no message contains a key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Final

from socratic_bench.errors import FailureKind, ModelCallFailed, ModelUnusable
from socratic_runner.conversations.failure_classes import PASSING, UNUSABLE
from socratic_runner.models.http.failure_tables import kind_of
from socratic_runner.models.http.keys import Key, hide
from socratic_runner.models.http.problems import Problem, problem_in, read_problem
from socratic_runner.models.http.retry_after import retry_after, until_reset

LONGEST_MESSAGE: Final = 1000
"""The most characters of a provider's message."""

LONGEST_FOREIGN_MESSAGE: Final = 200
"""The same for an address from a configuration: that may be any server, and readers of results
see its message."""

LONGEST_NAME: Final = 200
"""The most characters of a stop reason or a model's version."""

_NAMES_KEPT: Final = 16
"""The most names in the memory of one model's client: a provider repeats a few."""


class Failures:
    """Makes failures from the errors of one provider."""

    def __init__(self, who: str, key: Key | None, *, longest: int = LONGEST_MESSAGE) -> None:
        self._who = who
        self._key = key
        self._longest = longest
        self._known_names = lru_cache(_NAMES_KEPT)(partial(self.one_line, longest=LONGEST_NAME))

    def failure(
        self, kind: FailureKind, message: str, *, wait: float | None = None, passing: bool = True
    ) -> ModelCallFailed:
        """Make a failure of a class. `passing` says whether another try may help, if the class
        allows one.
        """
        message = f"{self._who} {self.one_line(message, self._longest + 100)}"
        if kind in UNUSABLE:
            return ModelUnusable(kind, message)
        # Other calls to the provider wait, even if this one is not repeated.
        wait = wait if kind in PASSING else None
        retryable = passing and kind in PASSING
        return ModelCallFailed(kind, message, retryable=retryable, retry_after=wait)

    def answered(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelCallFailed:
        """Make the failure for a status other than 2xx."""
        if 300 <= status < 400:
            return self._redirected(status, headers)
        problem = read_problem(body)
        kind = kind_of(status, problem.names, problem.message)
        return self._told(kind, f"answered HTTP {status}", problem, headers)

    def reported(self, parsed: Any, headers: Mapping[str, str] | None = None) -> ModelCallFailed:
        """Make the failure for an error within a successful response.

        `headers` are those of the response.
        """
        problem = problem_in(parsed)
        kind = kind_of(problem.status, problem.names, problem.message)
        return self._told(kind, "reported an error within its reply", problem, headers or {})

    def name(self, text: str) -> str:
        """Return `text` as `one_line` does: a name, which a provider repeats in every reply."""
        if len(text) > LONGEST_NAME:
            return self.one_line(text, LONGEST_NAME)
        return self._known_names(text)

    def one_line(self, text: str, longest: int) -> str:
        """Return `text` on one line and shortened, without the key and control characters."""
        visible = text
        if not text.isprintable():
            visible = "".join(each if each.isprintable() else " " for each in text)
        line = hide(" ".join(visible.split()), self._key)
        return line if len(line) <= longest else f"{line[: longest - 1]}…"

    def _told(
        self, kind: FailureKind, what: str, problem: Problem, headers: Mapping[str, str]
    ) -> ModelCallFailed:
        now = datetime.now(UTC)
        waits = (retry_after(headers, now), problem.retry_after, until_reset(headers, now))
        return self.failure(
            kind,
            f"{what}{self._said(problem)}",
            wait=next((wait for wait in waits if wait is not None), None),
            passing=headers.get("x-should-retry") != "false",
        )

    def _said(self, problem: Problem) -> str:
        name = f" ({self.one_line(problem.names[0], 100)})" if problem.names else ""
        message = self.one_line(problem.message, self._longest)
        return f"{name}: {message}" if message else name

    def _redirected(self, status: int, headers: Mapping[str, str]) -> ModelCallFailed:
        # The part after a ? may hold a secret.
        location = self.one_line(headers.get("Location", "nowhere").partition("?")[0], 200)
        return self.failure(
            FailureKind.BAD_REQUEST,
            f"answered HTTP {status}, a redirect to {location}, which is not followed with a "
            "question and a key; set base_url to the API's own address",
        )
