"""How often a turn is tried again, by the class of its failures."""

from __future__ import annotations

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.errors import ModelCallFailed
from socratic_runner.conversations.failure_classes import BUSY


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
