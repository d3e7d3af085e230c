"""The parts of a variance say what to buy: scenarios or repeats."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from socratic_bench.domain.aggregates.cell import Tally, millionths
from socratic_bench.domain.aggregates.difference import (
    Difference,
    equivalence,
    paired_difference,
    scenarios_to_equate,
)
from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.aggregates.variance import VarianceSplit, repeats_to_tell, split_variance
from tests.unit.domain.aggregates.written_scores import tally, vector_sums

Model = dict[str, RunScores]


def drawn(
    seed: int, *, scenario: float, rest: float, repeat: float, apart: float = 0.0, runs: int = 0
) -> tuple[Model, Model]:
    """Two models on 12 scenarios, with these standard deviations; 1 to 5 runs unless `runs`."""
    rng = random.Random(seed)
    models: tuple[Model, Model] = ({}, {})
    for number in range(12):
        base = 0.5 + rng.gauss(0, scenario)
        for model, shift in zip(models, (apart, 0.0), strict=True):
            middle = base + shift + rng.gauss(0, rest)
            tally = Tally()
            for _ in range(runs or rng.randint(1, 5)):
                tally.add(millionths(middle + rng.gauss(0, repeat)))
            model[f"s{number}"] = RunScores({1: tally})
    return models


def difference_of(one: Model, other: Model) -> Difference:
    return paired_difference(vector_sums(one), vector_sums(other))


@pytest.mark.parametrize(
    ("scenario", "rest", "repeat"), [(0.15, 0.05, 0.1), (0.05, 0.1, 0.05), (0.0, 0.1, 0.1)]
)
def test_the_parts_are_found_again_on_average_with_unequal_repeats(
    scenario: float, rest: float, repeat: float
) -> None:
    found = [
        split_variance(*drawn(seed, scenario=scenario, rest=rest, repeat=repeat))
        for seed in range(300)
    ]

    splits = [each for each in found if each is not None]
    assert len(splits) == 300
    # A part near 0 is cut off there, which lifts its average a little.
    assert fmean(each.scenario for each in splits) == pytest.approx(scenario**2, abs=0.0035)
    assert fmean(each.rest for each in splits) == pytest.approx(rest**2, rel=0.15, abs=0.0012)
    assert fmean(each.repeat or 0.0 for each in splits) == pytest.approx(repeat**2, rel=0.05)


def test_without_repeats_their_part_is_unknown_and_lies_in_the_rest() -> None:
    split = split_variance(*drawn(1, scenario=0.1, rest=0.05, repeat=0.1, runs=1))

    assert split is not None
    assert split.repeat is None
    assert split.repeats == 1


def test_four_scenarios_are_too_few_for_parts() -> None:
    one, other = drawn(1, scenario=0.1, rest=0.05, repeat=0.1)
    few = dict(list(one.items())[:4])

    assert split_variance(few, other) is None


def test_the_advised_repeats_tell_a_difference_and_fewer_do_not() -> None:
    models = drawn(3, scenario=0.1, rest=0.02, repeat=0.2, apart=0.08, runs=3)
    difference, split = difference_of(*models), split_variance(*models)
    assert split is not None
    assert difference.mean

    advised = repeats_to_tell(difference, split)

    assert advised is not None
    # 2.80 = z(0.975) + z(0.8): the size that a test with 80 % power needs, in standard errors.
    assert abs(difference.mean) / split.error(12, advised) >= 2.80
    assert abs(difference.mean) / split.error(12, advised - 1) < 2.81


def test_no_number_of_repeats_tells_what_the_scenarios_hide() -> None:
    models = drawn(3, scenario=0.1, rest=0.3, repeat=0.01, apart=0.01, runs=3)
    difference, split = difference_of(*models), split_variance(*models)

    assert split is not None
    assert repeats_to_tell(difference, split) is None


def test_no_number_of_repeats_makes_up_for_scenarios_that_nobody_asked() -> None:
    # The models differ by 0.02 in each run: repeats alone would tell, but six scenarios leave room.
    one, other = (
        {f"s{n}": RunScores({1: tally(score)}) for n in range(6)} for score in (0.52, 0.5)
    )
    difference = difference_of(one, other)

    assert repeats_to_tell(difference, VarianceSplit(0.0, 0.0, 0.01, 1)) is None


def test_a_difference_is_small_where_its_90_percent_interval_lies_within_the_margin() -> None:
    close = difference_of(*drawn(5, scenario=0.2, rest=0.01, repeat=0.02, runs=3))
    wide = difference_of(*drawn(5, scenario=0.2, rest=0.2, repeat=0.02, runs=3))

    for difference, is_small in ((close, True), (wide, False)):
        found = equivalence(difference, 0.05)
        assert found.interval is not None
        assert found.is_shown is is_small is (max(map(abs, found.interval)) < 0.05)
    assert (scenarios_to_equate(close, 0.05) or 0) <= 15 < (scenarios_to_equate(wide, 0.05) or 0)


def test_models_that_score_alike_everywhere_are_equivalent_and_few_scenarios_say_nothing() -> None:
    one, _ = drawn(1, scenario=0.1, rest=0.05, repeat=0.1)
    few = dict(list(one.items())[:4])

    assert equivalence(difference_of(one, one), 0.05).is_shown
    assert not equivalence(difference_of(few, few), 0.05).is_shown


def test_at_most_one_of_twenty_unequal_pairs_is_called_equivalent() -> None:
    # The true difference is the margin: the worst case of the test.
    shown = [
        equivalence(
            difference_of(*drawn(seed, scenario=0.1, rest=0.03, repeat=0.05, apart=0.05)), 0.05
        ).is_shown
        for seed in range(1_000)
    ]

    assert 0.03 <= fmean(shown) <= 0.07
