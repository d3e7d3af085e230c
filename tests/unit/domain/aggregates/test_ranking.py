"""Ranks say which differences are real: ties are ties, and false differences are rare."""

import random
from statistics import fmean

import pytest

from socratic_bench.domain.aggregates.difference import (
    holm,
    paired_difference,
    rank_intervals,
    scenarios_to_tell,
)
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.aggregates.statistics import student_t_quantile
from tests.unit.domain.aggregates.written_scores import tally, vector_sums


def model(*scores: float) -> FigureSums[str]:
    """One scenario for each score."""
    return vector_sums(
        {f"scenario-{place:02}": RunScores({1: tally(score)}) for place, score in enumerate(scores)}
    )


def test_a_difference_is_that_of_scenario_means() -> None:
    # Differences .4 .2 .5 .5 .1: mean .34, s = .1817, t = 4.185 with 4 degrees of freedom.
    difference = paired_difference(model(0.9, 0.8, 0.7, 0.9, 0.6), model(0.5, 0.6, 0.2, 0.4, 0.5))

    assert difference.scenarios == 5
    assert difference.mean == pytest.approx(0.34)
    assert difference.interval == pytest.approx((0.1144, 0.5656), abs=1e-4)
    assert difference.p_value == pytest.approx(0.0139, abs=1e-4)


def test_as_many_scenarios_tell_a_difference_as_its_power_demands() -> None:
    # Scores that differ everywhere: the variance decides, and n is the least for which
    # t(0.975, n - 1) + z(0.8) is at most d * sqrt(n), for an effect of d standard deviations.
    steps = [0.002 * step for step in range(40)]
    wide = paired_difference(
        model(*(level + step for step in steps for level in (0.7, 0.4))),
        model(*(0.45 + 0.0007 * step for step in range(80))),
    )
    assert wide.mean
    assert wide.spread
    effect = wide.mean / (wide.spread.variance * wide.scenarios) ** 0.5

    advised = scenarios_to_tell(wide)

    assert advised is not None
    for count, is_enough in ((advised, True), (advised - 1, False)):
        needed = student_t_quantile(0.975, count - 1) + 0.8416
        assert (needed <= effect * count**0.5) is is_enough


def test_no_number_of_scenarios_tells_equal_models_apart() -> None:
    assert scenarios_to_tell(paired_difference(model(*[0.5] * 6), model(*[0.5] * 6))) is None


def test_a_difference_too_small_for_any_benchmark_needs_no_end_of_time() -> None:
    hardly = paired_difference(model(*[0.5] * 6), model(*[0.500001] * 6))

    assert (scenarios_to_tell(hardly) or 10**7) > 10**6


def test_a_difference_has_the_interval_of_its_mirror_image() -> None:
    one, other = [0.9, 0.7, 0.8, 1.0, 0.6, 1.0], [0.5, 0.8, 0.4, 0.9, 0.6, 0.2]
    found = paired_difference(model(*one), model(*other))
    turned = paired_difference(*(model(*(1 - score for score in side)) for side in (one, other)))

    assert found.interval
    assert turned.interval == pytest.approx((-found.interval[1], -found.interval[0]))


def test_only_common_scenarios_count() -> None:
    difference = paired_difference(model(0.5, 0.5), model(0.25))

    assert (difference.scenarios, difference.mean) == (1, 0.25)


def test_fewer_than_five_scenarios_tell_no_models_apart() -> None:
    difference = paired_difference(model(1, 1, 1, 0.9), model(0, 0, 0, 0.1))

    assert difference.interval is None
    assert difference.p_value == 1.0


def test_models_without_a_common_scenario_have_no_difference() -> None:
    assert paired_difference(model(), model(0.5)).mean is None


def test_equal_models_share_all_ranks() -> None:
    equal = model(0.1, 0.5, 0.9, 0.4, 0.6, 0.3)

    assert rank_intervals([equal, equal, equal]) == [(1, 3)] * 3


def test_a_real_difference_separates_ranks_and_noise_does_not() -> None:
    better = model(0.90, 0.85, 0.92, 0.88, 0.91, 0.87, 0.93, 0.86, 0.90, 0.89)
    as_good = model(0.91, 0.83, 0.93, 0.87, 0.90, 0.88, 0.92, 0.87, 0.88, 0.89)
    worse = model(0.40, 0.45, 0.38, 0.50, 0.41, 0.39, 0.44, 0.47, 0.36, 0.42)

    assert rank_intervals([better, as_good, worse]) == [(1, 2), (1, 2), (3, 3)]


def test_nine_alike_differences_are_no_proof() -> None:
    assert rank_intervals([model(*[0.6] * 9), model(*[0.5] * 9)]) == [(1, 2), (1, 2)]
    assert rank_intervals([model(*[0.6] * 30), model(*[0.5] * 30)]) == [(1, 1), (2, 2)]


def test_no_models_have_no_ranks() -> None:
    assert rank_intervals([]) == []


def test_holm_corrects_for_the_number_of_tests() -> None:
    # The example of R's p.adjust(c(.01, .04, .03, .005), "holm").
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@pytest.mark.parametrize("scenarios", [5, 15])
@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("is_binary", [False, True])
def test_tables_of_equal_models_seldom_show_a_difference(
    scenarios: int, level: float, is_binary: bool
) -> None:
    chance = random.Random(f"{scenarios} {level} {is_binary}")
    tables = 400

    def score(mean: float) -> float:
        if is_binary:
            return float(chance.random() < mean)
        return min(1.0, max(0.0, chance.gauss(mean, 0.2)))

    def table() -> list[FigureSums[str]]:
        eases = [min(0.98, max(0.02, chance.gauss(level, 0.15))) for _ in range(scenarios)]
        return [
            vector_sums(
                {
                    f"s{place}": RunScores({1: tally(*(score(ease) for _ in range(3)))})
                    for place, ease in enumerate(eases)
                }
            )
            for _ in range(5)
        ]

    false = fmean(any(ranks != (1, 5) for ranks in rank_intervals(table())) for _ in range(tables))
    # Three standard errors of a share of 5 % above it.
    assert false <= 0.05 + 3 * (0.05 * 0.95 / tables) ** 0.5
