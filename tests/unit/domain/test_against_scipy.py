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
from socratic_bench.domain.aggregates.equivalence import equivalence, scenarios_to_equate
from socratic_bench.domain.aggregates.ranking import paired_difference, scenarios_to_tell
from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.aggregates.statistics import (
    student_t_distribution,
    student_t_quantile,
    wilson_interval,
)
from socratic_bench.domain.aggregates.variance import split_variance
from socratic_bench.domain.agreement.rank_correlation import spearman
from socratic_bench.domain.agreement.separation import Separation

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
    expected = stats.ttest_rel(one, other)
    bounds = expected.confidence_interval(0.95)

    found = paired_difference(model([[s] for s in one]), model([[s] for s in other]))

    assert found.mean == pytest.approx(fmean(one) - fmean(other), abs=1e-12)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-7)
    assert found.interval == pytest.approx((max(-1, bounds.low), min(1, bounds.high)), abs=1e-9)


@given(PAIRS, st.sampled_from([0.02, 0.05, 0.2]))
def test_two_one_sided_tests(pairs, margin: float) -> None:
    one, other = zip(*pairs, strict=True)
    differences = [first - second for first, second in pairs]
    larger = max(
        stats.ttest_1samp(differences, -margin, alternative="greater").pvalue,
        stats.ttest_1samp(differences, margin, alternative="less").pvalue,
    )

    difference = paired_difference(model([[s] for s in one]), model([[s] for s in other]))

    assert equivalence(difference, margin).p_value == pytest.approx(larger, abs=1e-7)


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
    difference = paired_difference(
        *(model([[s] for s in side]) for side in zip(*pairs, strict=True))
    )
    assert difference.mean
    assert difference.error
    size = difference.mean / (difference.error * difference.scenarios**0.5)

    advised = scenarios_to_tell(difference)
    assert advised is not None
    critical = stats.t.ppf(0.975, advised - 1)
    power = stats.nct.sf(critical, advised - 1, size * advised**0.5)
    assert power == pytest.approx(0.8, abs=0.06)

    margin = 0.05
    enough = scenarios_to_equate(difference, margin)
    assert enough is not None
    error = difference.error * (difference.scenarios / enough) ** 0.5
    reach = margin / error - stats.t.ppf(0.95, enough - 1)
    assert 2 * stats.norm.cdf(reach) - 1 == pytest.approx(0.8, abs=0.06)


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
