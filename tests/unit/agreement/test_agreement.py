"""Statistics of agreement: published examples, direct definitions, and their limits."""

from itertools import product
from statistics import correlation, pvariance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.research.agreement_measures import (
    Separation,
    auc_within,
    best_cut,
    coarsened,
    concordance,
    halved_kappa,
    kappa,
    kappa_at,
    limits_of_agreement,
    ranks,
    spearman,
)
from socratic_bench.research.building import group_draws, percentile_interval

ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.2, 0.5, 1.0]), st.integers(0, 1), st.integers(0, 3)),
    min_size=1,
    max_size=25,
)


def separation(rows):
    figures, labels, groups = zip(*rows, strict=True)
    return Separation(figures, labels, groups, 4)


def test_the_auc_is_that_of_the_example_of_scikit_learn():
    assert separation([(0.1, 0, 0), (0.4, 0, 0), (0.35, 1, 0), (0.8, 1, 0)]).auc() == 0.75


@given(ROWS, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_the_auc_counts_pairs_with_the_weights_of_their_groups(rows, weights):
    repeated = [row for row in rows for _ in range(weights[row[2]])]
    above = [figure for figure, label, _ in repeated if label]
    below = [figure for figure, label, _ in repeated if not label]
    won = sum((one > other) + (one == other) / 2 for one, other in product(above, below))
    found = separation(rows).auc([float(weight) for weight in weights])
    expected = won / (len(above) * len(below)) if above and below else None
    assert found == pytest.approx(expected) if expected is not None else found is None


def test_the_auc_within_tutors_counts_no_pair_of_two_tutors():
    figures, labels = [0.9, 0.8, 0.2, 0.1], [1, 0, 1, 0]
    assert auc_within(figures, labels, ["a", "a", "b", "b"]) == 1.0
    assert auc_within(figures, labels, ["a"] * 4) == 0.75
    assert auc_within(figures, labels, list("abcd")) is None


def test_kappa_is_that_of_a_published_example():
    # 50 proposals, two readers: both yes 20, both no 15, yes and no 5, no and yes 10: 0.4.
    one = [1] * 20 + [0] * 15 + [1] * 5 + [0] * 10
    other = [1] * 20 + [0] * 15 + [0] * 5 + [1] * 10
    assert kappa(one, other) == pytest.approx(0.4)
    assert kappa([1, 1], [1, 1]) is None
    assert kappa([], []) is None


@given(ROWS)
def test_the_best_cut_is_that_of_a_search_over_all_figures(rows):
    figures, labels, _ = zip(*rows, strict=True)
    found = best_cut(figures, labels)
    if len(set(labels)) < 2:
        assert found is None
        return
    by_cut = {cut: kappa_at(cut, figures, labels) or 0.0 for cut in sorted(set(figures))}
    assert by_cut[found] == max(by_cut.values())
    assert found == min(cut for cut, each in by_cut.items() if each == by_cut[found])


@given(ROWS)
def test_each_half_is_judged_by_the_cut_of_the_other(rows):
    figures, labels, groups = zip(*rows, strict=True)
    halves = [group % 2 for group in groups]
    by_half = {
        half: [
            (figure, label)
            for figure, label, each in zip(figures, labels, halves, strict=True)
            if each == half
        ]
        for half in (0, 1)
    }
    found = halved_kappa(figures, labels, halves)
    if any(len({label for _, label in each}) < 2 for each in by_half.values()):
        assert found is None
        return
    cuts = [best_cut(*zip(*by_half[1 - half], strict=True)) for half in (0, 1)]
    predicted = [int(f >= cuts[half]) for f, half in zip(figures, halves, strict=True)]
    assert found == (kappa(predicted, labels), tuple(cuts))


def test_coarse_figures_have_the_levels_and_shares_of_others():
    assert coarsened([0.1, 0.9, 0.5, 0.7], [0, 0, 2, 1]) == [0, 2, 0, 1]
    assert coarsened([0.5, 0.5, 0.5], [0, 1, 2]) == [2, 2, 2]


def test_spearmans_correlation_is_that_of_a_published_example():
    # Intelligence and hours of television of ten people: -29/165.
    iq = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
    hours = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]
    assert spearman(iq, hours) == pytest.approx(-29 / 165)
    assert spearman([1, 1], [1, 2]) is None


def test_equal_values_share_the_mean_of_their_ranks():
    assert ranks([5.0, 1.0, 5.0, 9.0]) == [2.5, 1.0, 2.5, 4.0]


def test_draws_of_groups_are_the_same_for_a_seed_and_as_many_as_the_groups():
    assert group_draws(7, 5, seed=3) == group_draws(7, 5, seed=3) != group_draws(7, 5, seed=4)
    assert all(sum(weights) == 7 for weights in group_draws(7, 5, seed=3))


def test_an_interval_leaves_a_fortieth_out_on_each_side():
    assert percentile_interval(range(1_001)) == pytest.approx((25.0, 975.0))
    assert percentile_interval([1.0, None] * 10) is None


LARGE_METER = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI_METER = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]
"""Peak flow by two meters, the example of Bland and Altman (1986), table 1."""


def test_the_limits_are_those_of_the_example_of_bland_and_altman():
    limits = limits_of_agreement(LARGE_METER, MINI_METER)
    assert limits is not None
    assert limits.mean == pytest.approx(-2.1, abs=0.05)
    assert limits.deviation == pytest.approx(38.8, abs=0.05)
    assert (limits.low, limits.high) == pytest.approx((-78.1, 73.9), abs=0.1)


def test_the_concordance_of_that_example_is_the_published_one():
    assert concordance(LARGE_METER, MINI_METER) == pytest.approx(0.943, abs=0.0005)


PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20)


@given(PAIRS)
def test_the_concordance_is_at_most_the_correlation_and_the_same_from_both_sides(pairs):
    one, other = zip(*pairs, strict=True)
    found = concordance(one, other)
    assert concordance(other, one) == (found if found is None else pytest.approx(found))
    if found is not None and pvariance(one) > 1e-9 and pvariance(other) > 1e-9:
        assert abs(found) <= abs(correlation(one, other)) + 1e-9


@given(PAIRS, st.floats(-0.5, 0.5))
def test_a_shift_moves_the_limits_and_lowers_the_concordance(pairs, shift):
    one, other = zip(*pairs, strict=True)
    before = limits_of_agreement(one, other)
    after = limits_of_agreement([each + shift for each in one], other)
    assert before is not None
    assert after is not None
    assert after.mean == pytest.approx(before.mean + shift)
    assert after.deviation == pytest.approx(before.deviation, abs=1e-9)


def test_without_pairs_or_without_spread_nothing_is_said():
    assert limits_of_agreement([0.5], [0.5]) is None
    assert concordance([], []) is None
    assert concordance([0.5, 0.5], [0.5, 0.5]) is None
    assert concordance([0.5, 0.5], [0.2, 0.2]) == 0
    assert concordance([0.1, 0.9], [0.1, 0.9]) == pytest.approx(1)
