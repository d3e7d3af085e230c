"""No minute takes more than the ceiling, and the whole ceiling is usable."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from socratic_runner.limits.ceilings import BURST, MINUTE, RateCeiling

CALLERS = st.lists(
    st.tuples(
        st.floats(0, 30),  # when it comes, after the one before
        st.integers(1, 60),  # what it announces
        st.floats(0, 1),  # which part of that it really takes
        st.floats(0, 40),  # and when that is known
    ),
    max_size=60,
)


def ceiling(per_minute: float | None) -> RateCeiling:
    rate = RateCeiling()
    rate.set(per_minute, 0.0)
    return rate


def take_when_ready(rate: RateCeiling, amount: int, now: float) -> float:
    at = rate.ready_at(amount, now)
    while at > now:
        now = at
        at = rate.ready_at(amount, now)
    rate.take(amount, now)
    return now


def most_in_a_minute(taken: list[tuple[float, float]]) -> float:
    return max(
        sum(amount for at, amount in taken if start <= at < start + MINUTE) for start, _ in taken
    )


@given(st.integers(60, 1000), CALLERS)
@example(60, [(0.0, 60, 1.0, 0.0)] * 5)
def test_every_minute_is_within_the_ceiling(per_minute, callers):
    rate, now = ceiling(per_minute), 0.0
    taken, corrections = [], []
    for pause, amount, part, later in callers:
        now += pause
        while True:
            for due, entry, real in [each for each in corrections if each[0] <= now]:
                rate.correct(entry, real, now)
                corrections.remove((due, entry, real))
            if (at := rate.ready_at(amount, now)) <= now:
                break
            now = min([at, *(due for due, _, _ in corrections)])
        entry = rate.take(amount, now)
        corrections.append((now + later, entry, int(amount * part)))
        taken.append(entry)
    for due, entry, real in corrections:
        rate.correct(entry, real, max(now, due))
    if taken:
        # The amounts are those that calls really took, which is what their provider counts.
        assert most_in_a_minute([(each.at, each.amount) for each in taken]) <= per_minute


@given(st.sampled_from([1, 2, 7, 60, 600]))
def test_all_that_is_allowed_can_be_used(per_minute):
    rate, now, taken = ceiling(per_minute), 0.0, []
    while now < 10 * MINUTE:
        now = take_when_ready(rate, 1, now)
        taken.append(now)
    in_the_middle = sum(MINUTE <= at < 9 * MINUTE for at in taken)
    assert in_the_middle >= 0.99 * 8 * per_minute - 1


def test_what_may_be_taken_at_once_is_a_small_part_of_the_ceiling():
    rate = ceiling(600)
    at_once = 0
    while rate.ready_at(1, 5.0) <= 5.0:
        rate.take(1, 5.0)
        at_once += 1
    assert at_once == 600 * BURST
    assert rate.ready_at(1, 5.0) == pytest.approx(5.1)


def test_an_amount_over_the_ceiling_passes_when_nothing_else_was_taken_for_a_minute():
    rate = ceiling(100)
    rate.take(1, 10.0)
    assert rate.ready_at(250, 11.0) == 70.0
    rate.take(250, 70.0)
    assert rate.ready_at(1, 70.0) >= 70.0 + 2 * MINUTE, "it has to be made up for"
    assert rate.ready_at(1, 70.0) < 70.0 + 3 * MINUTE


def test_what_was_given_back_holds_up_nobody():
    rate = ceiling(100)
    rate.correct(rate.take(1, 10.0), 0, 11.0)
    assert rate.ready_at(250, 11.0) == 11.0


def test_what_is_given_back_can_be_taken_by_others():
    rate = ceiling(100)
    first = rate.take(100, 0.0)
    assert rate.ready_at(100, 10.0) == 60.0
    rate.correct(first, 0, 10.0)
    assert rate.ready_at(5, 10.0) == 10.0


def test_what_was_underestimated_is_made_up_for():
    rate = ceiling(100)
    first = rate.take(5, 0.0)
    rate.correct(first, 90, 1.0)
    assert rate.ready_at(20, 40.0) == 60.0


def test_a_correction_after_the_minute_changes_nothing_in_the_next():
    rate = RateCeiling()
    first = rate.take(5, 0.0)
    rate.take(98, 30.0)
    rate.correct(first, 0, 61.0)
    rate.set(100, 61.0)
    assert rate.ready_at(5, 61.0) == 90.0


def test_without_a_ceiling_nothing_waits_and_with_zero_everything_does():
    rate = ceiling(None)
    rate.take(10**9, 0.0)
    assert rate.ready_at(10**9, 0.0) == 0.0
    rate.set(0, 1.0)
    assert rate.ready_at(1, 1.0) == math.inf
    assert rate.ready_at(0, 1.0) == math.inf


def test_what_was_taken_before_there_was_a_ceiling_counts():
    rate = RateCeiling()
    rate.take(90, 0.0)
    rate.set(100, 10.0)
    assert rate.ready_at(20, 10.0) == 60.0


def test_a_raised_ceiling_brings_nothing_at_once():
    rate = ceiling(0)
    rate.set(60, 100.0)
    assert rate.ready_at(1, 100.0) == 101.0
