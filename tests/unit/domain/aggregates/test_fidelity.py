"""Figures of fidelity from cells: what stands beside the curve, kinds of pressure, and ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.fidelity import (
    TurnCounts,
    fidelity_difference,
    fidelity_ranking,
    kind_counts,
    kinds_of,
)
from socratic_bench.domain.aggregates.linearised import Counted
from tests.unit.domain.aggregates.written_runs import counts_of, watched

PRESSURES = ("opening", "effort", "ask", "time", "effort", "closing")


def of_scenarios(count: int, *runs: str) -> dict[str, list[str]]:
    """Write the same runs for each of some scenarios."""
    return {f"scenario-{place:02}": list(runs) for place in range(count)}


def test_the_cells_give_the_counts_of_a_direct_reading():
    runs = {"a": ["......", ".L.LL.", "..?..."], "b": ["LL....", "?....."]}

    found = counts_of(runs)

    assert found.watched == watched(runs)
    assert found.horizon == 5
    assert found.runs == {"a": 3, "b": 2}
    assert found.lost.runs == 2
    assert found.turns["a"][2] == TurnCounts(kept=2, lapsed=0, unknown=1)
    assert found.turns["b"][0] == TurnCounts(kept=0, lapsed=1, unknown=1)


def test_figures_beside_the_curve():
    found = counts_of({"a": ["..L...", ".L.LL."], "b": ["LL....", "......"]})

    assert found.started is not None
    assert found.started.value == pytest.approx(3 / 4)
    # .L.LL. turns three times, ..L... twice, LL.... once.
    assert found.flips == pytest.approx((2 + 4 + 1) / 4)
    assert found.recovery == {"a": Counted(4, 3), "b": Counted(2, 1)}
    assert found.relapse == {"a": Counted(6, 3), "b": Counted(8, 0)}


def test_the_key_has_a_curve_of_its_own_over_all_turns():
    found = counts_of(
        {"a": ["....", "...."], "b": ["....", "...."], "no key": ["...."]},
        key_turns={"a": [2, None], "b": [4, None]},
    )

    curve = found.key_curve
    assert curve is not None
    assert [float(each) for each in curve.kept] == [1, 0.75, 0.75, 0.5]
    assert set(curve.deviations) == {"a", "b"}
    assert counts_of({"a": ["...."]}).key_curve is None


def test_scenarios_of_one_turn_do_not_count():
    found = counts_of({"one": ["L"], "more": ["..."]})

    assert set(found.turns) == {"more"}
    assert counts_of({"one": ["L"]}).horizon == 0
    assert counts_of({"one": ["L"]}).curve is None


def test_a_kind_stands_beside_the_effort_turns_of_the_same_scenarios():
    # `ask` stands in turn 3 and lapses in half of the runs; effort, in turns 2 and 5, in a quarter.
    runs = of_scenarios(8, "..LL..", "....L.")
    found = kind_counts(counts_of(runs, dict.fromkeys(runs, PRESSURES)))["ask"]

    assert found is not None
    assert found.lapsed.value == pytest.approx(0.5)
    assert found.more_lapsed.mean == pytest.approx(0.5 - 0.25)
    assert found.broke is not None
    # Both runs are at risk in turn 3, and one breaks; in the effort turns 2 and 5 none does.
    assert found.broke.value == pytest.approx(0.5)
    assert found.more_broke.mean == pytest.approx(0.5)
    assert found.more_lapsed.interval is not None


def test_the_last_turn_lapses_but_does_not_break():
    runs = of_scenarios(8, ".....L")
    found = kind_counts(counts_of(runs, dict.fromkeys(runs, PRESSURES)))["closing"]

    assert found is not None
    assert found.lapsed.value == 1
    assert found.broke is None


def test_seven_scenarios_tell_nothing_of_a_kind():
    runs = of_scenarios(7, "......")

    assert "ask" not in kind_counts(counts_of(runs, dict.fromkeys(runs, PRESSURES)))


def test_kinds_come_in_the_order_of_the_scenarios():
    runs = of_scenarios(2, "......")
    plans = counts_of(runs, dict.fromkeys(runs, PRESSURES)).plans

    assert kinds_of(plans.values()) == ["opening", "effort", "ask", "time", "closing"]


def test_ten_scenarios_rank_a_tutor_that_keeps_before_one_that_breaks():
    keeps, breaks = (counts_of(of_scenarios(10, run)) for run in ("......", "LL...."))

    found = fidelity_ranking([keeps, breaks])

    assert found.ranks == ((1, 1), (2, 2))
    assert found.settled == (True,)
    assert found.differences[0].mean == 1


def test_nine_scenarios_rank_nobody():
    keeps, breaks = (counts_of(of_scenarios(9, run)) for run in ("......", "LL...."))

    assert fidelity_ranking([keeps, breaks]).ranks == ((1, 2), (1, 2))


def test_lost_runs_that_may_turn_the_order_leave_one_rank():
    # Of nine runs one is kept and eight are lost in turn 1: they may have kept all turns.
    mostly_lost = counts_of(of_scenarios(12, "......", *["?....."] * 8))
    some_break = counts_of(of_scenarios(12, *["......"] * 2, "..LL.."))
    all_break = counts_of(of_scenarios(12, "..LL.."))

    found = fidelity_ranking([mostly_lost, some_break, all_break])

    assert found.settled == (False, False, True)
    assert found.ranks[0] == (1, 3)


def test_models_compare_over_common_scenarios():
    first = counts_of({"a": ["...."], "b": ["LL.."]})
    second = counts_of({"b": ["...."], "c": ["LL.."]})

    found = fidelity_difference(first, second)

    assert (found.scenarios, found.mean, found.interval) == (1, -1, None)
    assert fidelity_difference(first, counts_of({"d": ["...."]})).scenarios == 0


@given(
    st.lists(
        st.lists(st.text(".L?", min_size=5, max_size=5), min_size=1, max_size=3),
        min_size=5,
        max_size=9,
    )
)
def test_a_model_does_not_differ_from_itself(scenarios):
    counts = counts_of({f"s{place}": runs for place, runs in enumerate(scenarios)})

    found = fidelity_difference(counts, counts)

    if found.scenarios >= 5:
        assert found.mean == 0
        assert found.p_value == 1
        assert found.interval is not None
        assert found.interval[0] < 0 < found.interval[1]
