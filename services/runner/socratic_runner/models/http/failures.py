"""Classifies the errors of HTTP calls and makes their failures; no message contains a key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Final

from socratic_bench.errors import FailureKind, FaultScope, ModelCallFailed, ModelUnusable
from socratic_runner.conversations.call_outcomes import PASSING, UNUSABLE
from socratic_runner.models.http.diagnosis import Called, Diagnosis, diagnose, says_no_quota
from socratic_runner.models.http.keys import Key, hide
from socratic_runner.models.http.problems import (
    ProviderProblem,
    problem_in,
    read_problem,
    retry_after,
    until_reset,
)

_STATUSES: Final = {
    400: FailureKind.BAD_REQUEST,
    401: FailureKind.AUTH,
    402: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    407: FailureKind.UNREACHABLE,  # a proxy that wants a user and a password
    408: FailureKind.TIMEOUT,
    409: FailureKind.OVERLOADED,
    410: FailureKind.NOT_FOUND,
    413: FailureKind.CONTEXT_TOO_LONG,
    425: FailureKind.OVERLOADED,
    429: FailureKind.RATE_LIMITED,
    498: FailureKind.OVERLOADED,  # Groq's flex tier
    502: FailureKind.OVERLOADED,
    503: FailureKind.OVERLOADED,
    504: FailureKind.TIMEOUT,
    520: FailureKind.OVERLOADED,
    521: FailureKind.OVERLOADED,
    522: FailureKind.OVERLOADED,
    523: FailureKind.OVERLOADED,
    524: FailureKind.TIMEOUT,
    525: FailureKind.OVERLOADED,
    526: FailureKind.OVERLOADED,
    530: FailureKind.OVERLOADED,
    529: FailureKind.OVERLOADED,
}
"""520 to 530 are a proxy's numbers for a server behind it that does not answer. Other numbers
from 400 to 499 are BAD_REQUEST. The rest is UNKNOWN, 500 too: the server may fail at this one
question, so the runner does not wait as for an overloaded server."""

_NAMES: Final = {
    "context_length_exceeded": FailureKind.CONTEXT_TOO_LONG,
    "exceed_context_size_error": FailureKind.CONTEXT_TOO_LONG,
    "request_too_large": FailureKind.CONTEXT_TOO_LONG,
    "content_filter": FailureKind.REFUSED,
    "content_policy_violation": FailureKind.REFUSED,
    "moderation_blocked": FailureKind.REFUSED,
    "flagged_input": FailureKind.REFUSED,  # OpenRouter
    "invalid_prompt": FailureKind.REFUSED,  # OpenAI
    "hooks_failed": FailureKind.REFUSED,  # Portkey
    "data_inspection_failed": FailureKind.REFUSED,  # Alibaba
    "datainspectionfailed": FailureKind.REFUSED,
    "responsibleaipolicyviolation": FailureKind.REFUSED,
    "insufficient_quota": FailureKind.AUTH,
    "billing_hard_limit_reached": FailureKind.AUTH,
    "billing_not_active": FailureKind.AUTH,
    "billing_error": FailureKind.AUTH,
    "enforced_spend_limit_reached": FailureKind.AUTH,
    "invalid_api_key": FailureKind.AUTH,
    "budget_exceeded": FailureKind.AUTH,  # LiteLLM
    "insufficient_credits": FailureKind.AUTH,
    "model_not_found": FailureKind.NOT_FOUND,
}
"""Names of errors that say more than the number beside them."""

_BROAD_NAMES: Final = {
    "overloaded": FailureKind.OVERLOADED,
    "server_is_overloaded": FailureKind.OVERLOADED,  # OpenAI
    "engine_overloaded": FailureKind.OVERLOADED,
    "capacity_exceeded": FailureKind.OVERLOADED,  # Groq
    "service_tier_capacity_exceeded": FailureKind.OVERLOADED,  # Mistral
    "overloaded_error": FailureKind.OVERLOADED,
    "unavailable_error": FailureKind.OVERLOADED,
    "service_unavailable": FailureKind.OVERLOADED,
    "serviceunavailableerror": FailureKind.OVERLOADED,
    "bad_gateway": FailureKind.OVERLOADED,
    "provider_unavailable": FailureKind.OVERLOADED,  # OpenRouter
    "provider_overloaded": FailureKind.OVERLOADED,
    "unavailable": FailureKind.OVERLOADED,  # Google
    "rate_limit_error": FailureKind.RATE_LIMITED,
    "rate_limit_exceeded": FailureKind.RATE_LIMITED,
    "rate_limited": FailureKind.RATE_LIMITED,
    "slow_down": FailureKind.RATE_LIMITED,  # OpenAI
    "too_many_requests": FailureKind.RATE_LIMITED,
    "throttling_error": FailureKind.RATE_LIMITED,  # LiteLLM
    "ratelimiterror": FailureKind.RATE_LIMITED,
    "resource_exhausted": FailureKind.RATE_LIMITED,  # Google
    "authentication_error": FailureKind.AUTH,
    "authenticationerror": FailureKind.AUTH,
    "auth_error": FailureKind.AUTH,  # LiteLLM
    "unauthenticated": FailureKind.AUTH,  # Google
    "permission_error": FailureKind.AUTH,
    "permission_denied": FailureKind.AUTH,
    "permissiondeniederror": FailureKind.AUTH,
    "not_found_error": FailureKind.NOT_FOUND,
    "notfounderror": FailureKind.NOT_FOUND,  # vLLM and LiteLLM
    "not_found": FailureKind.NOT_FOUND,
    "invalid_request_error": FailureKind.BAD_REQUEST,
    "invalid_request": FailureKind.BAD_REQUEST,
    "badrequesterror": FailureKind.BAD_REQUEST,
    "invalid_argument": FailureKind.BAD_REQUEST,
    "timeout": FailureKind.TIMEOUT,
    "timeout_error": FailureKind.TIMEOUT,
    "deadline_exceeded": FailureKind.TIMEOUT,
    "server_error": FailureKind.UNKNOWN,
    "internalservererror": FailureKind.UNKNOWN,
    "api_error": FailureKind.UNKNOWN,
}
"""Names that say less than a number; a stream may give no number."""

_PHRASES: Final = (
    (
        re.compile(
            r"prompt is too long|input is too long|too many (input |prompt )?tokens"
            r"|(maximum|max|exceeds?\b.*) context|context (length|window|size)"
            r"|exceeds the maximum number of tokens|maximum prompt length"
            r"|max_tokens must be at least 1, got -|tokens?`? .*must be <= \d"
            r"|^request too large for "
        ),
        FailureKind.CONTEXT_TOO_LONG,
    ),
    (
        re.compile(
            r"content (management )?policy|content filter|safety system|(was|been) flagged"
            r"|blocked by .*(safety|moderation|guardrail)"
            r"|violates (our |the )?(usage|content) (guidelines|polic)|content exists risk"
            r"|(prompt|response) blocked|violated guardrail|contentpolicyviolation"
            r"|unsafe or sensitive content"
        ),
        FailureKind.REFUSED,
    ),
    (
        re.compile(
            r"api key (not valid|is invalid|expired)|(incorrect|invalid) api key"
            r"|credit balance is too low"
            r"|reached your specified .*usage limit|budget exhausted"
        ),
        FailureKind.AUTH,
    ),
    (re.compile(r"^unexpected endpoint or method"), FailureKind.NOT_FOUND),  # LM Studio, with 200
)
_PHRASES_COUNT: Final = frozenset({400, 403, 412, 413, 422, 424, 429, None})
"""Messages that say more than the number, if there is one."""


_BEHIND: Final = re.compile(
    r"\boverloaded\b|\bconnection error\b|cannot connect to host|connect call failed"
)
"""What a gateway says in a 500 of the server behind it."""


def kind_of(status: int | None, names: Iterable[str], message: str) -> FailureKind:
    """Classify an error: by its exact names, its message, its number, and its broad names.

    `status` is the HTTP status, or a similar number in a body; None without one.
    """
    lower = [name.lower() for name in names]
    for name in lower:
        if name in _NAMES:
            return _NAMES[name]
    if status in _PHRASES_COUNT:
        for phrase, kind in _PHRASES:
            if phrase.search(message.lower()):
                return kind
    if status == 500 and _BEHIND.search(message.lower()):
        return FailureKind.OVERLOADED
    if status is not None:
        other = FailureKind.BAD_REQUEST if 400 <= status < 500 else FailureKind.UNKNOWN
        return _STATUSES.get(status, other)
    return next((_BROAD_NAMES[name] for name in lower if name in _BROAD_NAMES), FailureKind.UNKNOWN)


LONGEST_MESSAGE: Final = 1000
"""The most characters of a provider's message."""

LONGEST_FOREIGN_MESSAGE: Final = 200
"""The same for an address from a configuration: that may be any server, and readers of results
see its message."""

LONGEST_NAME: Final = 200
"""The most characters of a stop reason or a model's version."""

_NAMES_KEPT: Final = 16
"""The most names in the memory of one model's client: a provider repeats a few."""


NOWHERE: Final = Called("")
"""The call of a provider's own library, whose address is not known here."""


class Failures:
    """Makes failures from the errors of one provider."""

    def __init__(
        self, who: str, key: Key | None, *, longest: int = LONGEST_MESSAGE, called: Called = NOWHERE
    ) -> None:
        self._who = who
        self._key = key
        self._longest = longest
        self.called = called
        self._known_names = lru_cache(_NAMES_KEPT)(partial(self.one_line, longest=LONGEST_NAME))

    def failure(
        self,
        kind: FailureKind,
        message: str,
        *,
        wait: float | None = None,
        passing: bool = True,
        diagnosis: Diagnosis | None = None,
    ) -> ModelCallFailed:
        """Make a failure of a class. `passing` says whether another try may help, if the class
        allows one.
        """
        message = f"{self._who} {self.one_line(message, self._longest + 100)}"
        scope, remedy, lasts = diagnosis or (None, "", False)
        if remedy:
            remedy = self.one_line(remedy, LONGEST_MESSAGE)
            ends = message.endswith((".", "!", "?"))
            message += f" {remedy[:1].upper()}{remedy[1:]}" if ends else f"; {remedy}"
        if lasts or (kind in UNUSABLE and scope is not FaultScope.CONVERSATION):
            return ModelUnusable(kind, message, scope)
        # Other calls to the provider wait, even if this one is not repeated.
        wait = wait if kind in PASSING else None
        retryable = passing and kind in PASSING
        return ModelCallFailed(kind, message, retryable=retryable, retry_after=wait, scope=scope)

    def answered(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelCallFailed:
        """Make the failure for a status other than 2xx."""
        if 300 <= status < 400:
            return self._redirected(status, headers)
        problem = read_problem(body)
        return self._told(f"answered HTTP {status}", status, problem, headers)

    def reported(self, parsed: Any, headers: Mapping[str, str] | None = None) -> ModelCallFailed:
        """Make the failure for an error within a successful response.

        `headers` are those of the response.
        """
        problem = problem_in(parsed)
        what = "reported an error within its reply"
        return self._told(what, problem.status, problem, headers or {})

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
        self, what: str, status: int | None, problem: ProviderProblem, headers: Mapping[str, str]
    ) -> ModelCallFailed:
        now = datetime.now(UTC)
        waits = (retry_after(headers, now), problem.retry_after, until_reset(headers, now))
        wait = next((wait for wait in waits if wait is not None), None)
        kind = kind_of(status, problem.names, problem.message)
        if kind is FailureKind.RATE_LIMITED and wait is None and says_no_quota(problem.message):
            # A gateway drops the name of this error; a limit that resets tells when.
            kind = FailureKind.AUTH
        return self.failure(
            kind,
            f"{what}{self._said(problem)}",
            wait=wait,
            passing=headers.get("x-should-retry") != "false",
            diagnosis=diagnose(kind, status, problem, self.called),
        )

    def _said(self, problem: ProviderProblem) -> str:
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
