"""A limit is shared fairly: no owner gets less so that another gets more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.fair_share import fair_shares

TOTALS = st.integers(0, 60)
WANTS = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=2), st.integers(0, 25), max_size=7)
TURNS = st.integers(0, 10**8)


@pytest.mark.parametrize(
    ("total", "wants", "shares"),
    [
        (10, {"a": 10, "b": 10}, {"a": 5, "b": 5}),
        (10, {"a": 2, "b": 10, "c": 10}, {"a": 2, "b": 4, "c": 4}),
        (10, {"a": 3, "b": 0}, {"a": 3, "b": 0}),
        (10, {"a": 4, "b": 3, "c": 9}, {"a": 4, "b": 3, "c": 3}),
        (0, {"a": 4}, {"a": 0}),
        (10, {}, {}),
    ],
)
def test_each_gets_an_equal_part_or_what_it_wants(
    total: int, wants: dict[str, int], shares: dict[str, int]
) -> None:
    assert fair_shares(total, wants) == shares


@given(TOTALS, WANTS, TURNS)
def test_shares_sum_up_to_the_total_or_to_all_that_is_wanted(
    total: int, wants: dict[str, int], turn: int
) -> None:
    shares = fair_shares(total, wants, turn)
    assert shares.keys() == wants.keys()
    assert sum(shares.values()) == min(total, sum(wants.values()))
    assert all(0 <= shares[name] <= wants[name] for name in wants)


@given(TOTALS, WANTS, TURNS)
def test_who_gets_less_than_it_wants_gets_as_much_as_any_other_but_for_one_part(
    total: int, wants: dict[str, int], turn: int
) -> None:
    shares = fair_shares(total, wants, turn)
    short = [name for name in wants if shares[name] < wants[name]]
    assert all(shares[name] + 1 >= most for name in short for most in shares.values())


@given(TOTALS, WANTS, TURNS)
def test_the_order_in_which_they_are_named_does_not_matter(
    total: int, wants: dict[str, int], turn: int
) -> None:
    other_order = dict(reversed(wants.items()))
    assert fair_shares(total, other_order, turn) == fair_shares(total, wants, turn)


@given(st.integers(1, 8), st.integers(0, 60), TURNS)
def test_parts_that_cannot_be_divided_go_round_among_all_who_wait(
    owners: int, total: int, turn: int
) -> None:
    wants = {f"owner {number}": total + 1 for number in range(owners)}
    rounds = [fair_shares(total, wants, turn + later) for later in range(owners)]
    assert {sum(shares[name] for shares in rounds) for name in wants} == {total}


@given(st.integers(1, 8), st.integers(0, 10), TURNS, TURNS)
def test_what_divides_evenly_is_the_same_at_every_turn(
    owners: int, each: int, turn: int, other_turn: int
) -> None:
    wants = {f"owner {number}": each + 1 for number in range(owners)}
    shares = fair_shares(each * owners, wants, turn)
    assert shares == fair_shares(each * owners, wants, other_turn) == dict.fromkeys(wants, each)
