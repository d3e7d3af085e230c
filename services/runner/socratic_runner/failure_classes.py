"""What follows from a failed call, by the class of its failure."""

from __future__ import annotations

from typing import Final

from socratic_bench.errors import FailureKind

BUSY: Final = frozenset({FailureKind.RATE_LIMITED, FailureKind.OVERLOADED, FailureKind.UNREACHABLE})
"""The provider has no time for anybody: no fault of this call. It is tried again with patience."""

PASSING: Final = BUSY | {
    FailureKind.TIMEOUT,
    FailureKind.CUT_STREAM,
    FailureKind.MALFORMED_REPLY,
    FailureKind.UNKNOWN,
}
"""Another try may help."""

MAY_BE_BILLED: Final = frozenset(
    {
        FailureKind.TIMEOUT,
        FailureKind.CUT_STREAM,
        FailureKind.MALFORMED_REPLY,
        FailureKind.UNKNOWN,
    }
)
"""The model may have written something that has to be paid for. The others cost nothing."""

UNUSABLE: Final = frozenset({FailureKind.AUTH, FailureKind.BAD_REQUEST, FailureKind.NOT_FOUND})
"""From a provider over the network: every other call to the model would fail in the same way."""
