"""Intervals and differences that were worked out by hand, figure by figure."""

from __future__ import annotations

import pytest

from socratic_bench.domain.aggregates.difference import (
    Difference,
    equivalence,
    paired_difference,
    scenarios_to_equate,
    scenarios_to_tell,
)
from socratic_bench.domain.aggregates.parts import FigureSums, jump_of
from socratic_bench.domain.aggregates.run_scores import VectorScores
from socratic_bench.domain.aggregates.statistics import clustered_mean, figure_estimate
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL, Weights
from socratic_bench.scoring.profiles import known_composition
from tests.unit.domain.aggregates.written_scores import V1, of_tutor, of_vector, tally

EQUAL = known_composition("socratic-v1")
ALIKE = "0.99,1,1 x6"
SOME_FORGET = (
    ".97,1,1 .96,1,0 | .98,1,1 .97,1,1 | .964,1,1 .97,1,1 | .972,1,1 .98,1,1 | "
    ".986,1,1 .97,1,1 | .968,1,1 .95,1,1"
)
HALF_APPLY = ".9,-,1 .8,1,1 | .85,1,1 .9,-,1 | .95,1,1 .9,.5,1 | .8,1,1 .85,1,1 | .9,.5,1 .8,1,1"


@pytest.mark.parametrize(
    ("scores", "mean", "variance", "jump", "floors", "ends"),
    [
        ("1 x6", 1, 0, 1, (0.027778, 0), (0.5716, 1)),
        ("1 1 1 x15", 1, 0, 1, (0.008170, 0), (0.8061, 1)),
        ("0 1 1 | 1 1 1 x14", 0.9778, 0.000494, 1, (0.008150, 0.000343), (0.7842, 1)),
        ("0.5 0.5 x10", 0.5, 0, 1, (0.003698, 0.003698), (0.3624, 0.6376)),
        ("1 1 | 0.5 0.5 x9", 0.55, 0.0025, 0.7901, (0.004978, 0.003809), (0.3904, 0.6896)),
        (
            "0.9 0.8 | 0.7 0.9 | 0.6 0.6 | 0.9 1.0 | 0.8 0.8",
            *(0.8, 0.00325, 0.1, (0.003304, 0.001295), (0.6067, 0.9121)),
        ),
        (
            "0.97 | 0.962 | 0.984 | 0.95 | 0.972 | 0.966 | 0.978 | 0.944",
            *(0.9657, 0.000023, 0.0048, (0.000101, 0.000012), (0.9420, 0.9754)),
        ),
        (
            "1 0 | 1 1 | 0 0 | 1 1 | 0 1 | 1 0",
            *(0.5833, 0.023611, 1, (0.019290, 0.014660), (0.2263, 0.8946)),
        ),
        (
            "1 1 1 | 1 | 1 1 | 0 1 1 | 1 1 | 1",
            *(0.9167, 0.005787, 1, (0.025752, 0.002604), (0.5042, 1)),
        ),
        (
            "1/1/0 1/1 | 1/1/1 1/0/1 | 1/1/1 1/1/1 x3",
            *(0.9, 0.004444, 1, (0.028708, 0.001922), (0.4296, 1)),
        ),
    ],
    ids=[f"E{number}" for number in range(1, 11)],
)
def test_the_interval_of_a_vector(scores, mean, variance, jump, floors, ends):
    found = clustered_mean(list(of_vector(scores).of(OVERALL).values()))

    assert found is not None
    assert found.interval is not None
    [own] = found.parts
    assert found.mean == pytest.approx(mean, abs=5e-5)
    assert found.variance == pytest.approx(variance, abs=5e-7)
    assert own.jump == pytest.approx(jump, abs=5e-5)
    assert (own.floors.below, own.floors.above) == pytest.approx(floors, abs=5e-7)
    assert found.interval.ends == pytest.approx(ends, abs=5e-5)


def test_scenarios_tie_by_their_means_however_many_runs_they_have():
    # 1 of 3 is 2 of 6, and a run of two turns counts with its mean: three of five scenarios tie.
    text = "1 0 0 | 1 0 0 1 0 0 | 1/0 0/0 0/1 | 0.4 | 0.3"
    means = [scores.mean or 0.0 for scores in of_vector(text).of(OVERALL).values()]
    by_degrees = tally(0.36, 0.35, 0.34, 0.4, 0.3)

    assert jump_of(by_degrees, means).jump == ((3 - 1) / (5 - 1)) ** 2


def test_four_scenarios_have_no_interval():
    found = clustered_mean(list(of_vector("0 0 x4").of(OVERALL).values()))

    assert found is not None
    assert (found.mean, found.variance, found.interval) == (0, None, None)


TWICE = {"interrogative": 2.0}
ONCE: dict[str, float] = {}


def weighed(*weights: dict[str, float]) -> Composition:
    """The vectors of `socratic-v1`, with other weights in the dimensions 0, 1 and so on."""
    by_dimension = {
        str(place): {name: given.get(name, 1.0) for name in V1}
        for place, given in enumerate(weights)
    }
    return Composition(V1, V1, Weights(by_dimension), {}, {})


@pytest.mark.parametrize(
    ("scores", "composition", "mean", "ends"),
    [
        (of_tutor(ALIKE), EQUAL, 0.9967, (0.8539, 0.9981)),
        (
            of_tutor(".97,1,1 | .98,1,1 | .964,1,1 | .972,1,1 | .986,1,1 | .968,1,1"),
            *(EQUAL, 0.9911, (0.8483, 0.9935)),
        ),
        (of_tutor(SOME_FORGET), EQUAL, 0.9622, (0.8150, 1)),
        (
            of_tutor(
                ".8,.5,1 .7,1,0 | .6,.5,0 .9,.75,1 | .75,1,1 .8,.5,1 | .5,0,0 .6,.5,0 | "
                ".85,.5,1 .9,1,1"
            ),
            *(EQUAL, 0.6550, (0.3525, 0.8688)),
        ),
        (of_tutor(ALIKE, weights=[TWICE]), weighed(TWICE), 0.9975, (0.7833, 0.9986)),
        (of_tutor(HALF_APPLY), EQUAL, 0.9183, (0.7354, 0.9536)),
        (
            of_tutor(ALIKE, weights=[TWICE, TWICE, TWICE, ONCE]),
            *(weighed(TWICE, TWICE, TWICE, ONCE), 0.9971, (0.8186, 0.9983)),
        ),
    ],
    ids=[f"O{number}" for number in range(1, 8)],
)
def test_the_interval_of_a_mean_of_vectors(
    scores: VectorScores[str], composition: Composition, mean: float, ends: tuple[float, float]
):
    found = figure_estimate(scores, OVERALL, composition)

    assert found.mean == pytest.approx(mean, abs=5e-5)
    assert found.interval == pytest.approx(ends, abs=5e-5)


@pytest.mark.parametrize("figure", [OVERALL, "form"])
def test_the_interval_of_an_overall_with_a_declared_share(figure: str):
    both = ".9,.9,1 | .8,.8,1 | .7,.7,.6 | .9,.9,1 | .2,.2,0 | .8,.8,1"
    scores = of_tutor(both, (OVERALL, "form", "asking"))

    found = figure_estimate(scores, figure, known_composition("socratic-v2"))

    assert found.mean == pytest.approx(0.7167, abs=5e-5)
    assert found.interval == pytest.approx((0.4139, 0.9069), abs=5e-5)


def difference(one: str, other: str) -> Difference:
    first, second = (FigureSums.of(of_tutor(each), OVERALL, EQUAL) for each in (one, other))
    return paired_difference(first, second)


def errors(found: Difference) -> tuple[float, float]:
    assert found.errors is not None
    return found.errors.below, found.errors.above


def test_equal_figures_are_no_proof_of_equality_with_twelve_scenarios():
    found = difference(".97,1,1 x12", ".97,1,1 x12")
    within = equivalence(found, 0.05)

    assert (found.mean, found.p_value) == (0, 1)
    assert errors(found) == pytest.approx((0.0356, 0.0356), abs=5e-5)
    assert found.interval == pytest.approx((-0.0784, 0.0784), abs=5e-5)
    assert within.p_value == pytest.approx(0.0941, abs=5e-5)
    assert within.interval == pytest.approx((-0.0640, 0.0640), abs=5e-5)
    assert not within.is_shown
    assert scenarios_to_equate(found, 0.05) == 17


def test_and_are_with_as_many_as_were_advised():
    within = equivalence(difference(".97,1,1 x17", ".97,1,1 x17"), 0.05)

    assert within.p_value == pytest.approx(0.0429, abs=5e-5)
    assert within.is_shown


def test_six_scenarios_that_agree_do_not_tell_a_small_difference():
    found = difference(".99,1,1 x6", ".975,1,1 x6")

    assert found.mean == pytest.approx(0.0050)
    assert errors(found) == pytest.approx((0.0556, 0.0556), abs=5e-5)
    assert found.interval == pytest.approx((-0.1378, 0.1478), abs=5e-5)
    assert found.p_value == pytest.approx(0.9318, abs=5e-5)
    assert scenarios_to_tell(found) == 224


def test_a_large_difference_is_told():
    found = difference(
        ".8,.5,1 | .9,1,1 | .7,.5,0 | .85,1,1 | .6,.75,1 | .9,.5,1 | .8,1,0 | .7,.5,1",
        ".7,.5,0 | .8,.5,1 | .6,.5,0 | .8,.5,1 | .65,.5,0 | .7,.5,1 | .8,.5,0 | .5,.5,0",
    )

    assert found.mean == pytest.approx(0.2271, abs=5e-5)
    assert errors(found) == pytest.approx((0.0560, 0.0516), abs=5e-5)
    assert found.interval == pytest.approx((0.0947, 0.3490), abs=5e-5)
    assert found.p_value == pytest.approx(0.0048, abs=5e-5)
