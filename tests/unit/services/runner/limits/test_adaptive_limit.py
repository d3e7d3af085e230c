"""The limit grows while all goes well, and is cut once for all that goes wrong at a time."""

from hypothesis import given
from hypothesis import strategies as st

from socratic_runner.limits.adaptive_limit import AdaptiveLimit, Latency


def grown(most: int = 1000, to: int = 8) -> AdaptiveLimit:
    """A limit in slow start that has come this far."""
    limit = AdaptiveLimit(most)
    reply(limit)
    while limit.value < to:
        reply(limit)
    return limit


def reply(limit: AdaptiveLimit, times: int = 1, first_token_ms: float | None = None) -> None:
    """Replies while as many calls are in flight as may be."""
    for _ in range(times):
        limit.begin()
        latency = None if first_token_ms is None else Latency(True, first_token_ms)
        limit.replied(int(limit.value), latency)


def push_back(limit: AdaptiveLimit) -> None:
    limit.pushed_back(limit.begin())


def test_the_first_call_is_alone_and_its_reply_lets_eight_through():
    limit = AdaptiveLimit(100)
    assert limit.value == 1
    push_back(limit)
    assert limit.value == 1
    reply(limit)
    assert limit.value == 8


def test_it_never_exceeds_the_most_that_is_allowed():
    limit = AdaptiveLimit(5)
    reply(limit, 50)
    assert limit.value == 5
    limit.set_most(2)
    assert limit.value == 2
    limit.set_most(6)
    reply(limit, 50)
    assert limit.value == 6


def test_it_grows_by_one_a_reply_until_the_first_push_back_and_then_by_one_a_round():
    limit = grown(to=40)
    reply(limit, 10)
    assert limit.value == 50
    push_back(limit)
    assert limit.value == 25
    reply(limit, 25)
    assert 25.9 < limit.value <= 26


def test_a_push_back_halves_it_in_slow_start_and_later_leaves_seven_tenths():
    limit = grown(to=100)
    push_back(limit)
    assert limit.value == 50
    push_back(limit)
    assert limit.value == 35


def test_calls_that_were_in_flight_at_a_cut_do_not_cut_again():
    limit = grown(to=64)
    calls = [limit.begin() for _ in range(64)]
    for call in calls[40:]:
        limit.pushed_back(call)
    assert limit.value == 32
    push_back(limit)
    assert limit.value < 32


def test_it_does_not_grow_while_it_is_not_used():
    limit = grown(to=20)
    for _ in range(100):
        limit.begin()
        limit.replied(19, None)
    assert limit.value == 20


def test_the_last_step_to_a_limit_that_was_pushed_back_is_a_slow_one():
    limit = grown(to=8)
    push_back(limit)
    push_back(limit)
    assert 2 < limit.value < 3, "pushed back at 4"
    reply(limit, 3)
    before_the_last_step = limit.value
    reply(limit, 16)
    assert before_the_last_step < limit.value < 4
    reply(limit, 16)
    assert limit.value >= 4
    at_the_top = limit.value
    reply(limit)
    assert limit.value > at_the_top + 1 / 8, "there is more room now than there was"


def test_risen_latency_cuts_it_and_it_does_not_grow_until_latency_has_fallen():
    limit = grown(most=100, to=100)
    reply(limit, 100, first_token_ms=300)
    reply(limit, 50, first_token_ms=900)
    cut = limit.value
    assert cut == 80
    reply(limit, int(cut), first_token_ms=900)
    assert limit.value == cut
    reply(limit, 3 * int(cut), first_token_ms=300)
    assert limit.value > cut


@given(
    st.integers(1, 300),
    st.lists(
        st.one_of(
            st.just("push back"),
            st.integers(1, 300),
            st.floats(1, 1e6),
        ),
        max_size=200,
    ),
)
def test_it_is_always_from_one_to_the_most_that_is_allowed(most, happenings):
    limit = AdaptiveLimit(most)
    for what in happenings:
        if what == "push back":
            push_back(limit)
        elif isinstance(what, int):
            most = what
            limit.set_most(most)
        else:
            reply(limit, 30, first_token_ms=what)
        assert 1 <= limit.value <= most
