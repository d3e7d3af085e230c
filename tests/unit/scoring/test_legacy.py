"""Scores of the predecessor, on 0 to 100, are recognised and converted."""

import pytest

from socratic_bench import is_legacy, on_unit_scale


@pytest.mark.parametrize(
    ("record", "converted"),
    [
        ({"open_ended": 80, "overall": 75.5}, {"open_ended": 0.8, "overall": 0.755}),
        ({"open_ended": 0.8}, {"open_ended": 0.008}),
        ({"overall": 64}, {"overall": 0.64}),
        (
            {"scores": {"probing_depth": 40, "overall": 1}, "text": "x"},
            {"scores": {"probing_depth": 0.4, "overall": 0.01}, "text": "x"},
        ),
        ({"non_directive": None, "overall": 50}, {"non_directive": None, "overall": 0.5}),
    ],
)
def test_old_records_are_divided_by_100(record, converted):
    assert is_legacy(record)
    assert on_unit_scale(record) == converted


@pytest.mark.parametrize(
    "record",
    [
        {"verbosity": 0.8, "overall": 0.8},
        {"overall": 1},
        {"overall": None},
        {"overall": True},
        {},
        {"overall": 0.8, "latency_ms": 300},
    ],
)
def test_new_records_pass_as_they_are(record):
    assert not is_legacy(record)
    assert on_unit_scale(record) == record


def test_conversion_leaves_other_figures_alone():
    record = {"age_appropriate": 90, "overall": 90, "latency_ms": 1200, "repeat": 3}
    assert on_unit_scale(record) == {
        "age_appropriate": 0.9,
        "overall": 0.9,
        "latency_ms": 1200,
        "repeat": 3,
    }
    assert record["overall"] == 90
