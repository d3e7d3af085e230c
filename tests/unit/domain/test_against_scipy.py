"""Our statistics, which need no package, agree with SciPy's."""

from __future__ import annotations

import random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from socratic_bench.domain.aggregates.cell import Tally, millionths
from socratic_bench.domain.aggregates.difference import (
    Difference,
    equivalence,
    paired_difference,
    scenarios_to_equate,
    scenarios_to_tell,
)
from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.aggregates.statistics import (
    student_t_distribution,
    student_t_quantile,
    wilson_interval,
)
from socratic_bench.domain.aggregates.variance import split_variance
from socratic_bench.research.agreement_measures import Separation, spearman
from tests.unit.domain.aggregates.written_scores import vector_sums

SCORES = st.integers(0, 100).map(lambda score: score / 100)
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=5, max_size=30).filter(
    lambda pairs: len({round(one - other, 6) for one, other in pairs}) > 1
)


def model(scores):
    """The scenarios of a model, each with the scores of its runs."""
    found = {}
    for place, runs in enumerate(scores):
        tally = Tally()
        for score in runs:
            tally.add(millionths(score))
        found[place] = RunScores({1: tally})
    return found


def difference_of(one, other) -> Difference:
    return paired_difference(*(vector_sums(model(side)) for side in (one, other)))


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9, 14, 44, 249])
def test_students_t(degrees: int) -> None:
    for probability in (0.6, 0.9, 0.95, 0.975, 0.995):
        found = student_t_quantile(probability, degrees)
        assert found == pytest.approx(stats.t.ppf(probability, degrees), rel=1e-9)
    for value in (0.0, 0.5, 2.0, 7.0):
        found = student_t_distribution(value, degrees)
        assert found == pytest.approx(stats.t.cdf(value, degrees), rel=1e-12)


@given(st.integers(1, 60), st.data())
def test_wilsons_interval(answers: int, data: st.DataObject) -> None:
    yes = data.draw(st.integers(0, answers))
    expected = stats.binomtest(yes, answers).proportion_ci(method="wilson")

    found = wilson_interval(yes / answers, answers, float(stats.norm.ppf(0.975)))

    assert found == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(PAIRS)
def test_the_paired_t_test_and_its_interval(pairs) -> None:
    one, other = zip(*pairs, strict=True)
    each = [first - second for first, second in pairs]
    degrees = len(each) - 1

    found = difference_of([[s] for s in one], [[s] for s in other])

    assert found.errors
    assert found.mean is not None
    assert found.mean == pytest.approx(fmean(one) - fmean(other), abs=1e-12)
    below, above = found.errors.below, found.errors.above
    assert min(below, above) >= stats.sem(each) - 1e-9
    toward = below if found.mean > 0 else above
    if abs(found.mean) > 1e-9:
        expected = 2 * stats.t.sf(abs(found.mean) / toward, degrees)
        assert found.p_value == pytest.approx(expected, abs=1e-7)
    reach = stats.t.ppf(0.975, degrees)
    bounds = max(-1, found.mean - reach * below), min(1, found.mean + reach * above)
    assert found.interval == pytest.approx(bounds, abs=1e-9)


@given(PAIRS, st.sampled_from([0.02, 0.05, 0.2]))
def test_two_one_sided_tests(pairs, margin: float) -> None:
    one, other = zip(*pairs, strict=True)
    difference = difference_of([[s] for s in one], [[s] for s in other])
    assert difference.errors
    assert difference.mean is not None
    larger = max(
        stats.t.sf((margin - difference.mean) / difference.errors.above, len(pairs) - 1),
        stats.t.sf((margin + difference.mean) / difference.errors.below, len(pairs) - 1),
    )

    assert equivalence(difference, margin).p_value == pytest.approx(larger, abs=1e-7)


def test_without_room_for_failures_they_are_the_tests_of_scipy() -> None:
    # Scores that differ by degrees everywhere: the variance of the differences decides alone.
    one = [0.42, 0.5, 0.47, 0.55, 0.44, 0.52, 0.58, 0.49]
    other = [0.3, 0.41, 0.33, 0.52, 0.29, 0.36, 0.4, 0.47]
    expected = stats.ttest_rel(one, other)

    found = difference_of([[s] for s in one], [[s] for s in other])

    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-9)
    bounds = expected.confidence_interval(0.95)
    assert found.interval == pytest.approx((bounds.low, bounds.high), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_parts_of_the_variance_are_those_of_the_analysis_of_variance(seed: int) -> None:
    rng = random.Random(seed)
    repeats, scenarios = 4, 9
    table = np.array(
        [
            [
                [min(1.0, max(0.0, rng.gauss(0.5 + shift, 0.1))) for _ in range(repeats)]
                for shift in (base + rng.gauss(0, 0.1), base + rng.gauss(0, 0.1))
            ]
            for base in (rng.gauss(0, 0.15) for _ in range(scenarios))
        ]
    ).round(6)
    means = table.mean(axis=2)
    # SciPy's F is the ratio of the mean squares between and within the groups.
    groups = table.reshape(-1, repeats)
    between = repeats * means.var(ddof=1)
    within = between / stats.f_oneway(*groups).statistic
    effects = means - means.mean(axis=0) - means.mean(axis=1, keepdims=True) + means.mean()
    interaction = repeats * (effects**2).sum() / (scenarios - 1)
    of_scenarios = 2 * repeats * means.mean(axis=1).var(ddof=1)

    found = split_variance(model(table[:, 0]), model(table[:, 1]))

    assert found is not None
    assert found.repeat == pytest.approx(within)
    assert found.rest == pytest.approx(max(0.0, (interaction - within) / repeats))
    assert found.scenario == pytest.approx(max(0.0, (of_scenarios - interaction) / 2 / repeats))


@pytest.mark.parametrize("effect", [0.3, 0.5, 0.8])
def test_as_many_scenarios_as_advised_have_the_power_that_was_promised(effect: float) -> None:
    pairs = [(0.5 + 0.1 * effect + 0.1 * step, 0.5) for step in (-1.2, -0.6, 0.0, 0.6, 1.2)]
    pairs = [(one + place / 100, other + place / 100) for place, (one, other) in enumerate(pairs)]
    difference = difference_of(*([[s] for s in side] for side in zip(*pairs, strict=True)))
    assert difference.mean
    assert difference.spread
    spread = difference.spread.variance * difference.scenarios
    size = difference.mean / spread**0.5

    advised = scenarios_to_tell(difference)
    assert advised is not None
    critical = stats.t.ppf(0.975, advised - 1)
    power = stats.nct.sf(critical, advised - 1, size * advised**0.5)
    assert power == pytest.approx(0.8, abs=0.06)

    margin = 0.05
    enough = scenarios_to_equate(difference, margin)
    assert enough is not None
    reach = margin / (spread / enough) ** 0.5 - stats.t.ppf(0.95, enough - 1)
    assert 2 * stats.norm.cdf(reach) - 1 == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("degrees", [1001, 4000, 10**6])
def test_students_t_of_many_degrees(degrees: int) -> None:
    for probability in (0.6, 0.95, 0.975):
        found = student_t_quantile(probability, degrees)
        assert found == pytest.approx(stats.t.ppf(probability, degrees), rel=1e-9)


@given(st.lists(st.tuples(SCORES, SCORES), min_size=3, max_size=30))
def test_spearmans_correlation(pairs) -> None:
    one, other = zip(*pairs, strict=True)
    found = spearman(one, other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-9)


@given(st.lists(SCORES, min_size=1, max_size=15), st.lists(SCORES, min_size=1, max_size=15))
def test_the_auc_is_that_of_mann_and_whitney(above: list[float], below: list[float]) -> None:
    separation = Separation(
        [*above, *below], [1] * len(above) + [0] * len(below), [0] * (len(above) + len(below)), 1
    )

    expected = stats.mannwhitneyu(above, below).statistic / len(above) / len(below)
    assert separation.auc() == pytest.approx(expected)
