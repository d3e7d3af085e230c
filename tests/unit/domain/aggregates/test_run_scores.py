"""A run counts once, however many turns it has."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Tally, millionths
from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.aggregates.statistics import clustered_estimate

SCORES = st.integers(0, MILLIONTHS)
RUNS = st.integers(1, 5).flatmap(
    lambda turns: st.lists(st.lists(SCORES, min_size=turns, max_size=turns), min_size=1, max_size=6)
)
"""The scores of each run by turn, in millionths; every run has all turns."""


def scores_of(runs: Sequence[Sequence[int]]) -> RunScores:
    found = RunScores()
    for run in runs:
        for turn, score in enumerate(run, 1):
            tally = Tally()
            tally.add(score)
            found.merge(turn, tally)
    return found


@given(RUNS)
def test_of_complete_runs_the_total_is_exactly_that_of_their_means(runs: list[list[int]]) -> None:
    scores = scores_of(runs)

    assert Fraction(*scores.total()) == sum(Fraction(sum(run), len(run)) for run in runs)
    assert scores.runs == len(runs)
    assert scores.mean == pytest.approx(fmean(map(fmean, runs)) / MILLIONTHS, abs=1e-12)


@given(st.lists(st.lists(SCORES, min_size=1, max_size=6), min_size=1, max_size=12))
def test_the_mean_of_runs_of_one_turn_is_that_of_their_responses_to_the_last_bit(
    scenarios: list[list[int]],
) -> None:
    scores = [scores_of([[score] for score in scenario]) for scenario in scenarios]

    estimate = clustered_estimate(scores)

    count = sum(map(len, scenarios))
    assert estimate.mean == sum(map(sum, scenarios)) / count / MILLIONTHS
    assert estimate.n == count


def test_a_run_of_five_turns_counts_as_much_as_one_of_one_turn() -> None:
    long = scores_of([[millionths(0.0)] * 5])
    short = scores_of([[millionths(1.0)]])

    assert clustered_estimate([long, short]).mean == 0.5


def test_a_turn_that_was_lost_makes_no_other_turn_weigh_more() -> None:
    # Runs that fail after their first turn, whatever they would have scored. First turns score .9,
    # later ones .3: complete runs score .5 on average.
    rng = random.Random(1)

    def run() -> list[float]:
        turns = [min(1.0, max(0.0, rng.gauss(mean, 0.1))) for mean in (0.9, 0.3, 0.3)]
        return turns if rng.random() < 0.6 else turns[:1]

    ours, of_responses, of_remaining_turns = [], [], []
    for _ in range(400):
        runs = [run() for _ in range(6)]
        if all(len(each) == 1 for each in runs):
            continue
        mean = scores_of([list(map(millionths, each)) for each in runs]).mean
        ours.append(mean or 0.0)
        of_responses.append(fmean(score for each in runs for score in each))
        of_remaining_turns.append(fmean(map(fmean, runs)))

    assert fmean(ours) == pytest.approx(0.5, abs=0.01)
    assert fmean(of_responses) > 0.55
    assert fmean(of_remaining_turns) > 0.6


def test_without_a_score_nothing_is_known() -> None:
    scores = RunScores({2: Tally()})

    assert (scores.mean, scores.runs, scores.total(), scores.repeat_variance()) == (
        None,
        0,
        (0, 1),
        None,
    )


@given(st.lists(SCORES, min_size=2, max_size=9))
def test_the_variance_of_repeats_of_one_turn_is_that_of_its_scores(scores: list[int]) -> None:
    found = scores_of([[score] for score in scores]).repeat_variance()

    assert found is not None
    spread, degrees = found
    assert spread == pytest.approx(variance([s / MILLIONTHS for s in scores]), abs=1e-9)
    assert degrees == len(scores) - 1


@given(RUNS.filter(lambda runs: len(runs) > 1))
def test_the_variance_of_repeats_of_several_turns_is_an_upper_bound(runs: list[list[int]]) -> None:
    found = scores_of(runs).repeat_variance()

    assert found is not None
    assert found[0] >= variance([fmean(run) / MILLIONTHS for run in runs]) - 1e-9
