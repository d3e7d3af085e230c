"""The outcome of a call: what follows from its class of failure, and who observes it."""

from __future__ import annotations

from typing import Final

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.domain.response import Usage
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

BILLED_IN_BATCH: Final = frozenset({FailureKind.CUT_STREAM, FailureKind.MALFORMED_REPLY})
"""The same for a call in a batch: the provider bills those that it answered."""

UNUSABLE: Final = frozenset(
    {FailureKind.AUTH, FailureKind.BAD_REQUEST, FailureKind.NOT_FOUND, FailureKind.TLS}
)
"""Over the network, every other call to the model would fail in the same way, unless the scope of
the failure is this conversation."""


def not_callable(error: InvalidInput) -> ModelCallFailed:
    """Return the failure of a model that cannot be called."""
    no_key = isinstance(error, MissingCredential)
    kind = FailureKind.AUTH if no_key else FailureKind.BAD_REQUEST
    return ModelCallFailed(kind, str(error), retryable=False)


class Retries:
    """Counts the failed calls of one turn, and says when to try again.

    Failures of a busy provider are counted by themselves: a turn that was rate limited five times
    and then timed out has used one of its `attempts`, and five of its `patient_attempts`.
    """

    def __init__(
        self, policy: RetryPolicy, *, attempts: int = 4, patient_attempts: int = 12
    ) -> None:
        """`attempts` and `patient_attempts` are calls in all, the first included; of `policy` only
        the delays are used.
        """
        self._policy = policy
        self._attempts = attempts
        self._patient_attempts = patient_attempts
        self._busy = 0
        self._others = 0

    def counted(self, failure: ModelCallFailed) -> tuple[int, int]:
        """How many calls failed of those that `failure` is counted with, and how many may."""
        if failure.kind in BUSY:
            return self._busy, self._patient_attempts
        return self._others, self._attempts

    def next_delay(self, failure: ModelCallFailed) -> float | None:
        """Seconds to wait before the next call, after one that failed; None: give the turn up.

        Never less than the provider asked for.
        """
        if failure.kind in BUSY:
            self._busy += 1
            failed, most = self._busy, self._patient_attempts
        else:
            self._others += 1
            failed, most = self._others, self._attempts
        if not failure.retryable or failed >= most:
            return None
        return self._policy.delay(failed, failure.retry_after)


class CallObserver:
    """Hears of ended calls and of failing models. This one does nothing; all return at once."""

    def replied(
        self, model_id: str, seconds: float, usage: Usage, cost_nanodollars: int | None
    ) -> None:
        """Note a call that ended with a reply."""

    def failed(self, model_id: str, seconds: float, kind: str) -> None:
        """Note a call that ended without a reply; `kind` is the class of its failure."""

    def troubled(self, model_id: str, kind: str) -> None:
        """Note a failing model of an experiment; `kind` is the class of its latest failure."""

    def untroubled(self, model_id: str, kind: str) -> None:
        """Note that a model reported by `troubled` replies again, or is out of hand."""


UNOBSERVED: Final = CallObserver()
