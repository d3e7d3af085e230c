"""A requested wait becomes a usable number of seconds, whatever the provider sends."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_runner.models.http.problems import retry_after, until_reset

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": " 1.5 "}, 1.5),
        ({"Retry-After": "0"}, 0.0),
        ({"retry-after-ms": "250", "Retry-After": "7"}, 0.25),
        ({"retry-after-ms": "soon", "Retry-After": "7"}, 7.0),
        ({"Retry-After": "Fri, 01 May 2026 12:00:30 GMT"}, 30.0),
        ({"Retry-After": "Fri, 01 May 2026 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "1e999"}, None),
        ({"Retry-After": "later"}, None),
    ],
)
def test_seconds_come_from_either_header(headers: dict[str, str], seconds: float | None):
    assert retry_after(headers, NOW) == seconds


VALUES = (
    st.text()
    | st.floats().map(str)
    | st.integers().map(str)
    | st.datetimes().map(lambda date: date.strftime("%a, %d %b %Y %H:%M:%S %z"))
    | st.from_regex(r"\w{3}, \d{1,9} \w{3} \d{1,9} \d{2}:\d{2}:\d{2} [+-]\d{4}")
)


@given(seconds=VALUES, milliseconds=VALUES)
def test_no_header_makes_anything_else_than_a_wait(seconds: str, milliseconds: str):
    headers = {"Retry-After": seconds, "retry-after-ms": milliseconds}
    wait = retry_after(headers, NOW)
    assert wait is None or (math.isfinite(wait) and wait >= 0)


@given(reset=VALUES, left=VALUES, standard=VALUES)
def test_no_header_of_a_limit_makes_anything_else_than_a_wait(reset: str, left: str, standard: str):
    headers = {
        "x-ratelimit-reset": reset,
        "x-ratelimit-reset-tokens": reset,
        "x-ratelimit-remaining-tokens": left,
        "ratelimit": standard,
    }
    wait = until_reset(headers, NOW)
    assert wait is None or (math.isfinite(wait) and wait >= 0)
