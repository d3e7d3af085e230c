"""A model that pushes back is left alone for longer and longer, until it answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.pause import NONE, Pause, PauseNews, PushBack, after


def pushed(
    seen: int, *, asked: float | None = None, part: float = 1.0, replied: bool = False
) -> PauseNews:
    pushed_back = PushBack(0.5, 30.0, part, asked, "rate_limited", "slow down")
    return PauseNews("m", seen, replied=replied, pushed_back=pushed_back)


def wants(seen: int) -> PauseNews:
    return PauseNews("m", seen, wants_call=True)


def replied(seen: int) -> PauseNews:
    return PauseNews("m", seen, replied=True)


def test_a_model_that_never_pushed_back_may_be_called_by_everybody() -> None:
    assert after(NONE, wants(0), 5.0) == (NONE, True)
    assert after(NONE, PauseNews("m", 0), 5.0) == (NONE, True)


def test_each_pause_in_a_row_is_twice_as_long_up_to_the_longest() -> None:
    pause, now, lengths = NONE, 0.0, list[float]()
    for _ in range(9):
        pause, may_call = after(pause, pushed(pause.number), now)
        assert not may_call
        lengths.append(pause.until - now)
        now = pause.until
    assert lengths == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert (pause.number, pause.in_a_row, pause.reason) == (9, 9, "slow down")


def test_a_pause_lasts_the_part_that_was_drawn() -> None:
    assert after(NONE, pushed(0, part=0.6), 10.0)[0].until == 10.3


def test_a_reply_ends_the_row_and_the_next_pause_is_short_again() -> None:
    pause = after(after(NONE, pushed(0), 0.0)[0], pushed(1), 1.0)[0]
    pause, may_call = after(pause, replied(2), 3.5)
    assert (pause.in_a_row, may_call) == (0, True)
    pause = after(pause, pushed(2), 4.0)[0]
    assert pause.until - 4.0 == 0.5


def test_calls_that_were_in_flight_when_a_pause_began_lengthen_and_end_it_not() -> None:
    pause = after(NONE, pushed(0), 0.0)[0]
    assert after(pause, pushed(0), 0.1) == (pause, False)
    assert after(pause, replied(0), 0.1) == (pause, False)
    assert after(pause, replied(0), 0.6)[0].in_a_row == 1


def test_after_one_pause_everybody_may_call_again() -> None:
    pause = after(NONE, pushed(0), 0.0)[0]
    assert after(pause, wants(1), 0.4) == (pause, False)
    assert after(pause, wants(1), 0.5) == (pause, True)
    assert after(pause, PauseNews("m", 1), 0.5) == (pause, True)


def test_after_two_pauses_calls_are_made_one_by_one_as_long_after_one_another_as_it_lasted() -> (
    None
):
    pause = after(after(NONE, pushed(0), 0.0)[0], pushed(1), 1.0)[0]
    assert after(pause, wants(2), 1.9) == (pause, False)
    pause, may_call = after(pause, wants(2), 2.0)
    assert may_call
    assert after(pause, wants(2), 2.0) == (pause, False)
    assert after(pause, wants(2), 2.9) == (pause, False)
    assert after(pause, wants(2), 3.0)[1]


def test_what_a_provider_asks_for_is_never_undercut_nor_forgotten() -> None:
    pause = after(NONE, pushed(0, asked=20.0), 0.0)[0]
    assert (pause.until, pause.gap) == (20.0, 0.5)
    late = after(pause, pushed(0, asked=40.0), 1.0)[0]
    assert (late.until, late.number) == (41.0, 1)
    assert after(late, pushed(0, asked=5.0), 2.0)[0] == late
    assert after(late, replied(1), 3.0) == (late._replace(in_a_row=0), False)
    shorter = after(late, pushed(1), 4.0)[0]
    assert shorter.until == 41.0


def test_one_who_asks_for_no_wait_and_refuses_is_left_alone_for_longer_and_longer() -> None:
    pause, now = NONE, 0.0
    for length in (0, 1, 2, 4):
        pause = after(pause, pushed(pause.number, asked=0.0), now)[0]
        assert pause.until - now == length
        now = pause.until


def test_a_reply_and_a_push_back_told_at_once_are_taken_in_that_order() -> None:
    pause = after(after(NONE, pushed(0), 0.0)[0], pushed(1), 1.0)[0]
    pause = after(pause, pushed(2, replied=True), 5.0)[0]
    assert (pause.in_a_row, pause.number, pause.until) == (1, 3, 5.5)


TIMES = st.floats(0, 100)
NEWS = st.builds(
    PauseNews,
    st.just("m"),
    st.integers(0, 5),
    st.booleans(),
    st.none()
    | st.builds(
        PushBack,
        st.floats(0.01, 60),
        st.floats(0.01, 3600),
        st.floats(0.5, 1),
        st.none() | st.floats(0, 3600),
        st.just("k"),
        st.just("r"),
    ),
    st.booleans(),
)


@given(told=st.lists(st.tuples(NEWS, TIMES), max_size=20))
def test_whatever_is_told_everybody_is_let_through_in_the_end(
    told: list[tuple[PauseNews, float]],
) -> None:
    pause, now, until = NONE, 0.0, 0.0
    for news, passes in told:
        now += passes
        pause, may_call = after(pause, news, now)
        assert pause.until >= min(until, pause.until)
        assert not (may_call and now < pause.until)
        until = pause.until
    then = max(pause.until, pause.next_call)
    assert after(pause, wants(pause.number), max(now, then))[1]


@given(st.floats(0, 10**6), st.floats(0, 3600), st.floats(0, 3600))
def test_a_pause_is_the_same_on_another_clock(now: float, until: float, next_call: float) -> None:
    pause = Pause(3, 2, until, next_call, 1.0)
    moved = pause.since(now).at(now)
    assert abs(moved.until - until) < 1e-6
    assert abs(moved.next_call - next_call) < 1e-6
