"""The order of models under other weights: exact shares, and ranks on a fixed grid."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.weightings import (
    MOST_WEIGHTINGS,
    is_ahead_everywhere,
    rank_ranges,
    share_ahead,
    weighting_grid,
)
from socratic_bench.scoring.composition import composition_of
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import profile_named
from tests.unit.domain.aggregates.written_scores import V1, of_tutor

STEPS = st.integers(min_value=-20, max_value=20).map(lambda step: Fraction(step, 20))
"""Few values, so that equal differences and zeros are frequent."""

HIGHER = st.integers(min_value=1, max_value=20).map(lambda step: Fraction(step, 20))
LOWER = st.integers(min_value=-20, max_value=0).map(lambda step: Fraction(step, 20))
DIFFERENCES = st.lists(STEPS, min_size=1, max_size=6)


def hundredths(*values: int) -> list[Fraction]:
    return [Fraction(value, 100) for value in values]


@pytest.mark.parametrize(
    ("differences", "share"),
    [
        ((10, -5, 2), Fraction(16, 21)),
        ((20, -10), Fraction(2, 3)),
        ((4, 4, -8), Fraction(5, 9)),
        ((10, 5, 2), 1),
        ((-10, -5, -2), 0),
        ((0, 0, 3), 1),
        ((0, 0, -3), 0),
        ((5, 5, 5), 1),
        ((0, 0, 0), 0),
        ((3,), 1),
    ],
)
def test_the_share_is_the_volume_of_the_weightings(
    differences: tuple[int, ...], share: Fraction
) -> None:
    assert share_ahead(hundredths(*differences)) == share


@given(HIGHER, LOWER)
def test_two_vectors_share_the_way_between_them(one: Fraction, other: Fraction) -> None:
    assert share_ahead([one, other]) == one / (one - other)


@given(HIGHER, LOWER, LOWER)
def test_three_vectors_cut_a_corner_off_the_triangle(
    one: Fraction, other: Fraction, third: Fraction
) -> None:
    # The line of equal scores cuts both sides of the corner of the first vector.
    assert share_ahead([one, other, third]) == one / (one - other) * one / (one - third)


@given(DIFFERENCES, st.randoms())
def test_the_order_of_the_vectors_does_not_matter(differences, random) -> None:
    shuffled = random.sample(differences, len(differences))

    assert share_ahead(shuffled) == share_ahead(differences)


@given(DIFFERENCES)
@example([Fraction(0), Fraction(0)])
def test_one_of_two_models_is_ahead_unless_they_are_equal(differences) -> None:
    both = share_ahead(differences) + share_ahead([-each for each in differences])

    assert both == (1 if any(differences) else 0)


@given(DIFFERENCES, st.fractions(min_value=Fraction(1, 10), max_value=10))
def test_the_scale_of_the_scores_does_not_matter(differences, scale) -> None:
    assert share_ahead([scale * each for each in differences]) == share_ahead(differences)


@given(st.lists(STEPS, min_size=2, max_size=6), st.integers(min_value=0, max_value=5))
def test_a_higher_difference_is_ahead_as_often_or_more_and_without_a_jump(
    differences, place
) -> None:
    at = place % len(differences)
    assume(any(each for other, each in enumerate(differences) if other != at))
    steps = [
        [*differences[:at], differences[at] + Fraction(step, 10**9), *differences[at + 1 :]]
        for step in range(3)
    ]

    shares = [share_ahead(each) for each in steps]

    # Equal differences take the limit: a step beside them changes next to nothing.
    assert all(0 <= after - before < Fraction(1, 10**6) for before, after in pairwise(shares))


@given(st.lists(STEPS, min_size=2, max_size=4))
def test_the_share_is_that_of_the_grid(differences) -> None:
    assume(any(differences))
    grid = weighting_grid(len(differences))
    ahead = sum(
        sum(w * d for w, d in zip(weights, differences, strict=True)) > 0 for weights in grid
    )

    assert ahead / len(grid) == pytest.approx(float(share_ahead(differences)), abs=0.11)


@pytest.mark.parametrize(("vectors", "points"), [(2, 1100), (3, 1081), (4, 969), (12, 364)])
def test_the_grid_is_even_and_has_so_many_points(vectors: int, points: int) -> None:
    grid = weighting_grid(vectors)

    assert len(set(grid)) == len(grid) == points <= MOST_WEIGHTINGS
    [total] = {sum(weights) for weights in grid}
    assert min(map(min, grid)) > 0
    # Each vector has the same weight on the average.
    assert {Fraction(sum(each), len(grid) * total) for each in zip(*grid, strict=True)} == {
        Fraction(1, vectors)
    }


def test_ranks_cover_95_percent_of_the_weightings() -> None:
    all_rounder, asks, is_brief, last = (50, 50), (90, 5), (0, 92), (0, 1)

    ranges = rank_ranges([hundredths(*each) for each in (all_rounder, asks, is_brief, last)])

    assert ranges == [(1, 2), (1, 3), (1, 3), (4, 4)]


def test_a_model_that_is_ahead_in_few_weightings_keeps_its_rank() -> None:
    # The other is ahead only where the first vector has less than 2 % of the weight.
    assert rank_ranges([hundredths(51, 50), hundredths(1, 51)]) == [(1, 1), (2, 2)]


def test_equal_models_share_the_better_rank() -> None:
    assert rank_ranges([hundredths(50, 20)] * 3) == [(1, 1)] * 3


def figure(text: str) -> FigureSums[str]:
    return FigureSums.of(of_tutor(text, V1), OVERALL, composition_of(profile_named("socratic-v1")))


def test_a_model_that_is_really_better_in_every_vector_is_ahead_everywhere() -> None:
    better, worse = figure(".9,.8,.9 x12"), figure(".2,.1,.1 x12")

    assert is_ahead_everywhere(better, worse, V1)
    assert not is_ahead_everywhere(worse, better, V1)


def test_one_vector_within_chance_leaves_the_order_open() -> None:
    assert not is_ahead_everywhere(figure(".9,.8,.9 x12"), figure(".2,.1,.88 x12"), V1)
    assert not is_ahead_everywhere(figure(".9,.8,.9 x4"), figure(".2,.1,.1 x4"), V1)
