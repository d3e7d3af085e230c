"""Amounts of money as people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.results.costs import usd
from socratic_bench.results.formats import dollars


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (1_234.567, "$1,234.57"),
        (1, "$1.00"),
        (0.3, "$0.3000"),
        (0.0123456, "$0.0123"),
        (0.000043, "$0.000043"),
        (1e-9, "$0.0000000010"),
    ],
)
def test_small_amounts_keep_two_digits_that_say_something(amount, text):
    assert dollars(amount) == text


def test_what_is_only_known_in_part_is_at_least_that_much():
    assert dollars(0.5, at_least=True) == "≥ $0.5000"


@given(st.integers(1, 10**15))
def test_only_nothing_is_shown_as_nothing(nanodollars):
    assert float(dollars(usd(nanodollars)).lstrip("$").replace(",", "")) > 0


@given(st.integers(0, 10**15))
def test_no_nanodollar_is_lost_on_the_way_to_usd(nanodollars):
    assert f"{usd(nanodollars):.9f}" == f"{Decimal(nanodollars) / 10**9:.9f}"
