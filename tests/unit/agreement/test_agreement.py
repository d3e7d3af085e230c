"""Statistics of agreement: published examples, direct definitions, and their limits."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.agreement.kappa import best_cut, kappa, kappa_at
from socratic_bench.domain.agreement.rank_correlation import ranks, spearman
from socratic_bench.domain.agreement.separation import Separation, auc_within
from socratic_bench.reporting.validity.group_bootstrap import group_draws, percentile_interval

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


def test_the_best_cut_serves_all_sets_and_not_one_alone():
    clear = ([0.1, 0.2, 0.7, 0.8], [0, 0, 1, 1])
    other = ([0.1, 0.4, 0.5, 0.8], [0, 0, 1, 1])
    cut = best_cut([clear, other])
    assert cut == 0.41
    assert kappa_at(cut, *clear) == kappa_at(cut, *other) == 1.0
    assert best_cut([]) is None


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
