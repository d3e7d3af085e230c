"""A busy provider is waited for with patience, and a call that may be paid for is not."""

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_runner.conversations.call_outcomes import BUSY, PASSING, Retries
from tests.unit.services.runner.limits.simulated_server import failure

POLICY = RetryPolicy(first_delay=1.0, longest_delay=30.0, draw=lambda: 1.0)


def calls_made(retries: Retries, kind: FailureKind) -> int:
    """How many calls a turn makes if all of them fail in this way."""
    calls = 1
    while retries.next_delay(failure(kind)) is not None:
        calls += 1
    return calls


def test_calls_are_made_up_to_the_number_for_the_class_of_their_failures():
    for kind in PASSING:
        assert calls_made(Retries(POLICY), kind) == (12 if kind in BUSY else 4)
    assert calls_made(Retries(POLICY, attempts=2, patient_attempts=3), FailureKind.TIMEOUT) == 2
    assert (
        calls_made(Retries(POLICY, attempts=2, patient_attempts=3), FailureKind.RATE_LIMITED) == 3
    )


def test_a_turn_that_was_rate_limited_has_all_of_its_timeouts_left():
    retries = Retries(POLICY)
    for _ in range(5):
        assert retries.next_delay(failure(FailureKind.RATE_LIMITED)) is not None
    assert calls_made(retries, FailureKind.TIMEOUT) == 4


def test_the_delays_of_a_class_begin_short_however_often_the_other_failed():
    retries = Retries(POLICY)
    busy = [retries.next_delay(failure(FailureKind.OVERLOADED)) for _ in range(3)]
    assert busy == [1.0, 2.0, 4.0]
    assert retries.next_delay(failure(FailureKind.CUT_STREAM)) == 1.0
    assert retries.next_delay(failure(FailureKind.UNREACHABLE)) == 8.0


def test_what_cannot_succeed_is_given_up_at_once():
    hopeless = ModelCallFailed(FailureKind.RATE_LIMITED, "no quota", retryable=False)
    assert Retries(POLICY).next_delay(hopeless) is None


@given(
    st.lists(st.tuples(st.sampled_from(sorted(FailureKind)), st.none() | st.floats(0, 1e5))),
    st.floats(0, 1, exclude_max=True),
)
def test_a_turn_ends_and_never_undercuts_what_was_asked_for(failures, drawn):
    retries = Retries(RetryPolicy(draw=lambda: drawn), attempts=3, patient_attempts=5)
    waited = 0
    for kind, retry_after in failures:
        delay = retries.next_delay(failure(kind, retry_after))
        waited += delay is not None
        assert delay is None or delay >= (retry_after or 0)
    assert waited <= (3 - 1) + (5 - 1)
