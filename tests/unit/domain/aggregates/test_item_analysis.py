"""Difficulty and discrimination of scenarios."""

from __future__ import annotations

from statistics import correlation, fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.item_analysis import ItemFigures, analyse_items

unit = st.floats(0.0, 1.0)
models = st.lists(st.fixed_dictionaries({"a": unit, "b": unit, "c": unit}), max_size=12)

SAME = ItemFigures(0.5, (0.5, 0.5), None, 3)
GOOD = [{"a": level, "b": level, "c": level / 2} for level in (0.1, 0.4, 0.6, 0.9)]


def test_a_scenario_that_goes_with_all_others_tells_models_apart_perfectly():
    assert analyse_items(["a"], GOOD)[0].discrimination == pytest.approx(1.0)


def test_a_scenario_on_which_better_models_do_worse_has_a_negative_one():
    turned = [{**scores, "a": 1 - scores["a"]} for scores in GOOD]

    assert analyse_items(["a"], turned)[0].discrimination == pytest.approx(-1.0)


def test_the_scenario_itself_is_no_part_of_the_total():
    # With the scenario in its own total, the correlation would be positive.
    scores = [{"a": 0.0, "b": 0.5}, {"a": 1.0, "b": 0.4}, {"a": 0.5, "b": 0.45}]

    assert analyse_items(["a"], scores)[0].discrimination == pytest.approx(-1.0)


def test_the_interval_is_student_s_over_the_models():
    found = analyse_items(["a"], GOOD)[0]

    assert found.mean == 0.5
    assert found.interval == pytest.approx((0.0, 1.0), abs=1e-9)
    # As scipy.stats.t.interval has it, with the standard error of the mean as scale.
    narrow = analyse_items(["a"], [{"a": score} for score in (0.4, 0.5, 0.6)])[0]
    assert narrow.interval == pytest.approx((0.2515862, 0.7484138), abs=1e-6)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], ItemFigures(None, None, None, 0)),
        ([{"b": 0.5}], ItemFigures(None, None, None, 0)),
        ([{"a": 0.5, "b": 0.1}] * 2, ItemFigures(0.5, None, None, 2)),
        (
            [{"a": 0.5, "b": each} for each in (0.1, 0.2, 0.3)],
            ItemFigures(0.5, (0.5, 0.5), None, 3),
        ),
        ([{"a": each} for each in (0.5, 0.5, 0.5)], SAME),
    ],
)
def test_what_cannot_be_told_is_none(scores: list[dict[str, float]], expected: ItemFigures):
    assert analyse_items(["a"], scores)[0] == expected


@given(models)
def test_figures_are_within_their_bounds_and_agree_with_the_standard_library(
    scores: list[dict[str, float]],
):
    found = analyse_items(["a"], scores)[0]

    assert found.models == len(scores)
    if found.interval is not None and found.mean is not None:
        low, high = found.interval
        assert 0.0 <= low <= found.mean + 1e-9
        assert found.mean - 1e-9 <= high <= 1.0
    if found.discrimination is not None:
        assert -1.0 <= found.discrimination <= 1.0
        own = [each["a"] for each in scores]
        rest = [fmean((each["b"], each["c"])) for each in scores]
        if max(own) - min(own) > 1e-3 and max(rest) - min(rest) > 1e-3:
            assert found.discrimination == pytest.approx(correlation(own, rest), abs=1e-6)
