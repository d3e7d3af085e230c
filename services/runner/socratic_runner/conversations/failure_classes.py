"""The consequences of a failed call, by the class of its failure."""

from __future__ import annotations

from typing import Final

from socratic_bench.errors import FailureKind, InvalidInput, MissingCredential, ModelCallFailed

BUSY: Final = frozenset({FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.UNREACHABLE})
"""The provider is busy, independently of this call. The runner retries with patience."""

PASSING: Final = BUSY | {
    FailureKind.TIMEOUT,
    FailureKind.CUT_STREAM,
    FailureKind.MALFORMED_REPLY,
    FailureKind.UNKNOWN,
}
"""A retry may help."""

MAY_BE_BILLED: Final = frozenset(
    {
        FailureKind.TIMEOUT,
        FailureKind.CUT_STREAM,
        FailureKind.MALFORMED_REPLY,
        FailureKind.UNKNOWN,
    }
)
"""The provider may bill output of the call. Failures of other classes cost nothing."""

UNUSABLE: Final = frozenset({FailureKind.AUTH, FailureKind.BAD_REQUEST, FailureKind.NOT_FOUND})
"""Over the network, every other call to the model would fail in the same way."""


def not_callable(error: InvalidInput) -> ModelCallFailed:
    """Return the failure of a model that cannot be called."""
    no_key = isinstance(error, MissingCredential)
    kind = FailureKind.AUTH if no_key else FailureKind.BAD_REQUEST
    return ModelCallFailed(kind, str(error), retryable=False)
