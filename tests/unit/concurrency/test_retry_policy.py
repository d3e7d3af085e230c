"""Back-off grows to a ceiling, is spread by jitter, and never undercuts a requested delay."""

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.concurrency.retry_policy import RetryPolicy


@given(
    attempt=st.integers(1, 10_000),
    drawn=st.floats(0, 1, exclude_max=True),
    asked=st.none() | st.floats(0, 1e6),
)
def test_a_delay_is_within_its_bounds(attempt, drawn, asked):
    policy = RetryPolicy(first_delay=0.5, longest_delay=30, draw=lambda: drawn)
    delay = policy.delay(attempt, asked)
    assert delay >= (asked or 0)
    assert delay <= max(asked or 0, 30)


def test_the_bound_doubles_with_each_try_up_to_the_ceiling():
    policy = RetryPolicy(first_delay=0.5, longest_delay=3, draw=lambda: 1.0)
    assert [policy.delay(attempt) for attempt in range(1, 6)] == [0.5, 1, 2, 3, 3]


def test_tries_are_counted_with_the_first():
    policy = RetryPolicy(attempts=3)
    assert [policy.exhausted(attempt) for attempt in (1, 2, 3, 4)] == [False, False, True, True]
