"""Classifies a provider's error by its names, its message and its number."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from socratic_bench.errors import FailureKind

_STATUSES: Final = {
    400: FailureKind.BAD_REQUEST,
    401: FailureKind.AUTH,
    402: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
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
    529: FailureKind.OVERLOADED,
}
"""520 to 524 are a proxy's numbers for a server behind it that does not answer. Other numbers
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
        ),
        FailureKind.REFUSED,
    ),
    (
        re.compile(
            r"api key (not valid|is invalid|expired)|(incorrect|invalid) api key"
            r"|credit balance is too low"
            r"|reached your specified .*usage limit"
        ),
        FailureKind.AUTH,
    ),
)
_PHRASES_COUNT: Final = frozenset({400, 403, 413, 422, 429, None})
"""Messages that say more than the number, if there is one."""


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
    if status is not None:
        other = FailureKind.BAD_REQUEST if 400 <= status < 500 else FailureKind.UNKNOWN
        return _STATUSES.get(status, other)
    return next((_BROAD_NAMES[name] for name in lower if name in _BROAD_NAMES), FailureKind.UNKNOWN)
