"""Who may begin the call of a turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.leasing import (
    DEAD_AFTER_SECONDS,
    Claimant,
    Holder,
    LeaseAnswer,
    OpenLease,
    TurnStanding,
    answer_to,
)

ME = Claimant("me", "mine", reserve=0, may_judge=True)
FREE = TurnStanding(may_call=True, is_answered=False, open=None, left=None)


def held(holder: Holder, *, is_over: bool = False, owner: str = "other") -> TurnStanding:
    return FREE._replace(open=OpenLease(owner, "theirs", is_over, holder))


@pytest.mark.parametrize(
    ("holder", "is_over", "answer"),
    [
        (Holder.UNKNOWN, False, LeaseAnswer.HELD),
        (Holder.UNKNOWN, True, LeaseAnswer.GRANTED),
        (Holder.ALIVE, False, LeaseAnswer.HELD),
        (Holder.ALIVE, True, LeaseAnswer.GRANTED),
        (Holder.OVERDUE, True, LeaseAnswer.HELD),
        (Holder.SILENT, False, LeaseAnswer.GRANTED),
        (Holder.GONE, False, LeaseAnswer.GRANTED),
    ],
)
def test_a_lease_is_taken_over_from_the_dead_and_from_who_lets_it_lapse(
    holder: Holder, is_over: bool, answer: LeaseAnswer
) -> None:
    assert answer_to(ME, held(holder, is_over=is_over)) is answer


def test_who_may_not_judge_silence_takes_nothing_over_from_the_silent() -> None:
    timid = ME._replace(may_judge=False)
    assert answer_to(timid, held(Holder.SILENT, is_over=True)) is LeaseAnswer.HELD
    assert answer_to(timid, held(Holder.GONE)) is LeaseAnswer.GRANTED


def test_a_claim_that_is_repeated_is_granted_again_whatever_the_budget() -> None:
    mine = FREE._replace(open=OpenLease("me", "mine", is_over=True, holder=Holder.ALIVE), left=0)
    assert answer_to(ME._replace(reserve=9), mine) is LeaseAnswer.GRANTED


@given(st.integers(0, 9), st.none() | st.integers(-9, 9))
def test_a_reservation_has_to_fit_into_what_is_left(reserve: int, left: int | None) -> None:
    answer = answer_to(ME._replace(reserve=reserve), FREE._replace(left=left))
    fits = left is None or reserve == 0 or reserve <= left
    assert answer is (LeaseAnswer.GRANTED if fits else LeaseAnswer.OVER_BUDGET)


def test_a_stop_comes_before_an_answer_and_an_answer_before_a_lease() -> None:
    answered = held(Holder.ALIVE)._replace(is_answered=True)
    assert answer_to(ME, answered) is LeaseAnswer.ANSWERED
    assert answer_to(ME, answered._replace(may_call=False)) is LeaseAnswer.STOPPED


@given(st.floats(0, 60), st.booleans(), st.booleans())
def test_an_owner_is_dead_once_it_left_or_is_silent_for_long(
    silent: float, is_gone: bool, overdue: bool
) -> None:
    holder = Holder.of(silent, is_gone=is_gone, overdue=overdue)
    assert holder.is_dead == (is_gone or silent > DEAD_AFTER_SECONDS)
    assert (holder is Holder.OVERDUE) == (overdue and not holder.is_dead)
