"""Failed calls over HTTP, as whoever asks a model hears of them: with a kind, and without a key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from socratic_bench.errors import ModelCallFailed, ModelUnusable
from socratic_bench.ports.models import FailureKind
from socratic_runner.failure_classes import PASSING, UNUSABLE
from socratic_runner.models.http.failure_tables import kind_of
from socratic_runner.models.http.keys import Key, hide
from socratic_runner.models.http.problems import Problem, problem_in, read_problem
from socratic_runner.models.http.retry_after import retry_after

LONGEST_MESSAGE: Final = 1000
"""Characters of a provider's message that are kept."""


class Failures:
    """Makes failures of what one provider says, or does not say."""

    def __init__(self, who: str, key: Key | None) -> None:
        self._who = who
        self._key = key

    def failure(
        self, kind: FailureKind, message: str, *, wait: float | None = None, passing: bool = True
    ) -> ModelCallFailed:
        """A failure of a kind. `passing` says whether another try may help, if the kind allows."""
        message = f"{self._who} {self.one_line(message, LONGEST_MESSAGE + 100)}"
        if kind in UNUSABLE:
            return ModelUnusable(kind, message)
        retryable = passing and kind in PASSING
        wait = wait if retryable else None
        return ModelCallFailed(kind, message, retryable=retryable, retry_after=wait)

    def answered(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelCallFailed:
        """The failure that a status other than 2xx stands for."""
        if 300 <= status < 400:
            return self._redirected(status, headers)
        problem = read_problem(body)
        kind = kind_of(status, problem.names, problem.message)
        wait = retry_after(headers, datetime.now(UTC))
        return self.failure(
            kind,
            f"answered HTTP {status}{self._said(problem)}",
            wait=wait if wait is not None else problem.retry_after,
            passing=headers.get("x-should-retry") != "false",
        )

    def reported(self, parsed: Any) -> ModelCallFailed:
        """The failure that an error within a reply stands for, whose status said all is well."""
        problem = problem_in(parsed)
        kind = kind_of(problem.status, problem.names, problem.message)
        message = f"reported an error within its reply{self._said(problem)}"
        return self.failure(kind, message, wait=problem.retry_after)

    def one_line(self, text: str, longest: int) -> str:
        """`text` without the key, line breaks and control characters, and not too long."""
        visible = "".join(each if each.isprintable() else " " for each in text)
        line = hide(" ".join(visible.split()), self._key)
        return line if len(line) <= longest else f"{line[: longest - 1]}…"

    def _said(self, problem: Problem) -> str:
        name = f" ({self.one_line(problem.names[0], 100)})" if problem.names else ""
        message = self.one_line(problem.message, LONGEST_MESSAGE)
        return f"{name}: {message}" if message else name

    def _redirected(self, status: int, headers: Mapping[str, str]) -> ModelCallFailed:
        # What follows a ? may be somebody's secret.
        location = self.one_line(headers.get("Location", "nowhere").partition("?")[0], 200)
        return self.failure(
            FailureKind.BAD_REQUEST,
            f"answered HTTP {status}, a redirect to {location}, which is not followed with a "
            "question and a key; set base_url to where the API is",
        )
