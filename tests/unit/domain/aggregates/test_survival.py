"""Survival curves of runs: worked examples, and a direct reading of every run."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.linearised import Counted, linearised_difference
from socratic_bench.domain.aggregates.survival import (
    Survival,
    lost_runs,
    pass_power,
    survival,
)
from tests.benchmarks.fidelity_coverage import (
    Pressed,
    false_differences,
    half_life,
    measure,
)
from tests.unit.domain.aggregates.written_runs import Written, break_of, broken, watched


def of_breaks(*scenarios: Sequence[int | None]) -> dict[str, list[str]]:
    """Write the runs of scenarios by the turns in which they break."""
    return {
        f"scenario-{place}": [broken(turn) for turn in turns]
        for place, turns in enumerate(scenarios, 1)
    }


def curve(runs: Written) -> Survival[str]:
    found = survival(watched(runs), len(next(iter(runs.values()))[0]) - 1)
    assert found is not None
    return found


C1 = of_breaks((1, None), (2, 3), (None, None), (1, 2), (None, None))
C2 = {
    **C1,
    "scenario-1": [broken(1), broken(None, watched_to=1)],
    "scenario-5": [broken(None), broken(None, watched_to=2)],
}
C3 = of_breaks((None, None), (None, 3), (None, None), (2, None), (None, None))
C4 = of_breaks(*[(None, None)] * 5)


@pytest.mark.parametrize(
    ("run", "end"),
    [
        ("............", (None, 11)),
        (".L.LL.", (4, 4)),
        ("LL", (1, 1)),
        (".L", (None, 1)),
        (".L?LL", (None, 1)),
        ("?.", (None, 0)),
        ("..LL.LL", (3, 3)),
        ("L..", (None, 2)),
    ],
)
def test_runs_are_written_as_the_definition_reads_them(run, end):
    assert break_of(run) == end


@pytest.mark.parametrize(
    ("runs", "kept", "mean", "interval", "half_life"),
    [
        (C1, (0.8, 0.6, 0.5), 1.9, (0.6435, 2.8794), (3, (1, None))),
        (C2, (0.8, 0.5714, 0.4286), 1.8, (0.5112, 2.8938), (3, (1, None))),
        (C3, (1, 0.9, 0.8), 2.7, (1.2887, 3), (None, (1, None))),
        (C4, (1, 1, 1), 3, (1.4759, 3), (None, (1, None))),
    ],
    ids=["C1", "C2", "C3", "C4"],
)
def test_worked_curves(runs, kept, mean, interval, half_life):
    found = curve(runs)

    assert tuple(map(float, found.kept)) == pytest.approx(kept, abs=5e-5)
    assert float(found.restricted_mean) == pytest.approx(mean, abs=5e-5)
    assert found.mean_interval == pytest.approx(interval, abs=5e-5)
    assert (found.half_life, found.half_life_interval()) == half_life


def test_the_deviation_of_each_scenario_leads_to_the_variance():
    found = curve(C1)

    deviations = [math.fsum(own) for own in found.deviations.values()]
    assert deviations == pytest.approx([-0.08, -0.08, 0.22, -0.28, 0.22])
    # With nothing lost, those of the scenarios' own shares, such as 0.5, 0.5, 1, 0, 1 after turn 2.
    assert [found.at(turn).variance for turn in (1, 2, 3)] == pytest.approx([0.015, 0.035, 0.05])
    assert found.intervals() == [
        pytest.approx((0.3456, 1), abs=5e-5),
        pytest.approx((0.1649, 0.9710), abs=5e-5),
        pytest.approx((0.0504, 0.9496), abs=5e-5),
    ]


def test_a_curve_that_reaches_one_half_exactly_has_its_half_life_there():
    # In floating point 0.8 * 0.75 * (5 / 6) is more than one half.
    assert curve(C1).kept[-1] == Fraction(1, 2)
    assert curve(C1).half_life == 3


def test_the_difference_is_paired_by_scenario():
    found = linearised_difference(curve(C3).mean_share, curve(C1).mean_share)

    assert found.spread is not None
    assert found.interval is not None
    assert found.mean == pytest.approx(0.8 / 3)
    assert math.sqrt(found.spread.variance) * 3 == pytest.approx(0.3391, abs=5e-5)
    # Room for a failure that no scenario showed: t times the floors replaces the paired error.
    assert [end * 3 for end in found.interval] == pytest.approx([-0.6826, 1.9173], abs=5e-5)
    assert found.p_value == pytest.approx(0.2085, abs=5e-5)


def test_lost_runs_bound_the_turns_kept():
    counts = watched(C2)
    lost = lost_runs(counts, dict.fromkeys(counts, 2))

    worst, best = (survival(each(counts), 3) for each in (lost.worst, lost.best))
    assert lost.runs == 2
    assert worst is not None
    assert best is not None
    assert (worst.restricted_mean, best.restricted_mean) == (Fraction(8, 5), Fraction(19, 10))


def test_a_run_that_was_never_watched_is_lost_in_its_first_turn():
    counts = watched({"scenario-1": ["?...", "...."]})
    lost = lost_runs(counts, {"scenario-1": 2})

    assert lost.turns == {"scenario-1": (1, 0, 0)}
    assert lost.worst(counts)["scenario-1"] == [Counted(2, 1), Counted(1, 0), Counted(1, 0)]
    assert lost.best(counts)["scenario-1"] == [Counted(2, 0)] * 3


def test_without_a_run_at_risk_no_curve_is_drawn():
    assert survival({"scenario-1": [Counted(0, 0)] * 3}, 3) is None
    assert survival({}, 3) is None
    assert pass_power({}, 1) is None


def test_after_the_last_run_broke_the_curve_stays_at_zero():
    found = curve({"scenario-1": ["LL.."], "scenario-2": ["LLLL"]})

    assert found.kept == (Fraction(0),) * 3
    assert found.half_life == 1
    assert set(found.deviations.values()) == {(0.0, 0.0, 0.0)}


def test_four_scenarios_have_no_interval():
    found = curve(of_breaks(*[(None, 1)] * 4))

    assert found.mean_interval is None
    assert found.half_life_interval() is None


def test_scenarios_of_different_lengths_are_watched_to_their_own_end():
    runs = {"long": ["....", "..LL"], "short": ["..."]}
    counts = watched(runs)

    found = survival(counts, 3)

    assert found is not None
    assert [each.cases for each in found.turns] == [3, 3, 2]
    assert lost_runs(counts, {"long": 2, "short": 1}).runs == 0


def written(most_scenarios: int = 7) -> st.SearchStrategy[dict[str, list[str]]]:
    """Draw runs of up to six turns."""
    turns = st.integers(2, 6)
    return turns.flatmap(
        lambda turns: st.lists(
            st.lists(st.text("..LL?", min_size=turns, max_size=turns), min_size=1, max_size=4),
            min_size=1,
            max_size=most_scenarios,
        )
    ).map(lambda scenarios: {f"s{place}": runs for place, runs in enumerate(scenarios)})


def read_directly(runs: Written, weights: dict[str, Fraction]) -> list[Fraction]:
    """Return S by asking each run, turn by turn, with a weight for each scenario."""
    horizon = len(next(iter(runs.values()))[0]) - 1
    left, found = Fraction(1), []
    for turn in range(1, horizon + 1):
        at_risk = broke = Fraction()
        for scenario, several in runs.items():
            for run in several:
                at, last = break_of(run)
                at_risk += weights[scenario] * (last >= turn)
                broke += weights[scenario] * (at == turn)
        left *= 1 - broke / at_risk if at_risk else 1
        found.append(left)
    return found


@given(written())
def test_the_curve_is_that_of_a_direct_reading(runs):
    found = survival(watched(runs), len(runs["s0"][0]) - 1)

    expected = read_directly(runs, dict.fromkeys(runs, Fraction(1)))
    if found is None:
        assert expected == [1] * len(expected)
    else:
        assert list(found.kept) == expected


@given(written())
def test_a_deviation_is_how_far_a_scenario_moves_the_curve(runs):
    found = survival(watched(runs), len(runs["s0"][0]) - 1)
    if found is None:
        return
    step = Fraction(1, 10**9)
    for scenario, deviations in found.deviations.items():
        weights = {**dict.fromkeys(runs, Fraction(1)), scenario: 1 + step}
        moved = read_directly(runs, weights)
        slopes = [float((more - own) / step) for more, own in zip(moved, found.kept, strict=True)]
        assert deviations == pytest.approx(slopes, abs=1e-6)


@given(written())
def test_deviations_add_up_to_nothing(runs):
    found = survival(watched(runs), len(runs["s0"][0]) - 1)
    if found is not None:
        for turn in range(1, found.horizon + 1):
            assert math.fsum(found.at(turn).deviations.values()) == pytest.approx(0, abs=1e-12)


@given(written())
def test_the_mean_lies_between_the_bounds_and_within_its_interval(runs):
    counts = watched(runs)
    horizon = len(runs["s0"][0]) - 1
    lost = lost_runs(counts, {scenario: len(each) for scenario, each in runs.items()})
    found = survival(counts, horizon)
    worst, best = (survival(each(counts), horizon) for each in (lost.worst, lost.best))

    assert worst is not None
    assert best is not None
    assert worst.restricted_mean <= best.restricted_mean
    assert lost.runs == sum(
        at is None and last < horizon for each in runs.values() for at, last in map(break_of, each)
    )
    if found is not None:
        assert worst.restricted_mean <= found.restricted_mean <= best.restricted_mean
        if found.mean_interval is not None:
            low, high = found.mean_interval
            assert 0 <= low <= float(found.restricted_mean) <= high <= horizon


@given(written(), st.integers(1, 4))
def test_pass_power_counts_the_choices_of_runs_that_all_keep(runs, several):
    horizon = len(runs["s0"][0]) - 1
    known = {
        scenario: [at is None for at, last in map(break_of, each) if at or last == horizon]
        for scenario, each in runs.items()
    }
    shares = [
        Fraction(sum(map(all, choices)), len(choices))
        for ends in known.values()
        if (choices := list(combinations(ends, several)))
    ]

    found = pass_power(watched(runs), several)

    if found is None:
        assert not shares
    else:
        assert found.value == pytest.approx(float(sum(shares) / len(shares)))
        assert len(found.deviations) == len(shares)


@pytest.mark.parametrize(
    "tutor",
    [half_life(3), half_life(5, lost=0.02), Pressed(24, 3, 0.002), Pressed(15, 3, 0, broken=0.05)],
    ids=repr,
)
def test_an_interval_of_turns_kept_covers_the_truth(tutor: Pressed) -> None:
    found = measure(tutor, 120)

    assert found.coverage >= 0.93
    assert found.least_of_curve >= 0.93


@pytest.mark.parametrize("alike", [False, True])
def test_equal_tutors_seldom_look_different(*, alike: bool) -> None:
    tutor = half_life(3, scenarios=15, likeness=0.3)

    assert false_differences(tutor, 120, alike=alike) <= 0.06


def test_tutors_of_different_half_lives_look_different() -> None:
    rng = random.Random(1)
    pairs = [(half_life(8).draw(rng), half_life(3).draw(rng)) for _ in range(50)]

    shown = [linearised_difference(a.mean_share, b.mean_share).p_value <= 0.05 for a, b in pairs]

    assert sum(shown) >= 40
