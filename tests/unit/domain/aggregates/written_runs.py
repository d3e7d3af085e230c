"""Runs under pressure as texts: `.` a kept turn, `L` a lapsed one, `?` an unknown one.

They are read run by run, as the definition says it, and not by counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Cell, CellKey, Tally
from socratic_bench.domain.aggregates.fidelity import FidelityCounts, TurnPlan, fidelity_counts
from socratic_bench.domain.aggregates.linearised import Counted
from socratic_bench.scoring.profile import OVERALL

Written = Mapping[str, Sequence[str]]
"""The runs of each scenario."""


def break_of(run: str) -> tuple[int | None, int]:
    """Return the turn of a run's break, and the last turn in which it was watched."""
    for turn in range(1, len(run)):
        two = run[turn - 1 : turn + 1]
        if "?" in two:
            return None, turn - 1
        if two == "LL":
            return turn, turn
    return None, len(run) - 1


def watched(runs: Written) -> dict[str, list[Counted]]:
    """Return the runs at risk and the breaks of each turn."""
    found = {}
    for scenario, written in runs.items():
        ends = [break_of(run) for run in written]
        found[scenario] = [
            Counted(sum(last >= turn for _, last in ends), sum(at == turn for at, _ in ends))
            for turn in range(1, len(written[0]))
        ]
    return found


def broken(turn: int | None, horizon: int = 3, watched_to: int | None = None) -> str:
    """Write a run that breaks in a turn or never, watched to the end or to an earlier turn."""
    if turn is not None:
        return "." * (turn - 1) + "LL" + "." * (horizon - turn)
    if watched_to is None:
        return "." * (horizon + 1)
    return "." * (watched_to + 1) + "?" * (horizon - watched_to)


def counts_of(
    runs: Written,
    pressures: Mapping[str, Sequence[str]] | None = None,
    key_turns: Mapping[str, Sequence[int | None]] | None = None,
) -> FidelityCounts:
    """Fold the cells of written runs; `key_turns` says when each run of a scenario said the key."""
    plans = {
        scenario: TurnPlan(len(written[0]), tuple((pressures or {}).get(scenario, ())))
        for scenario, written in runs.items()
    }
    return fidelity_counts(cells_of(runs, key_turns), plans, lambda cell: cell.key.scenario_id)


def cells_of(
    runs: Written, key_turns: Mapping[str, Sequence[int | None]] | None = None
) -> list[Cell]:
    """Return the cells that a fidelity profile would fill."""
    found = []
    for scenario, written in runs.items():
        said = (key_turns or {}).get(scenario)
        for turn in range(1, len(written[0]) + 1):
            cell = Cell(CellKey("exp-1", "m/m", scenario, turn, "fidelity-1"), "student")
            kept, known = (
                sum(run[turn - 1] in states for run in written) for states in (".", ".L")
            )
            if known:
                total = kept * MILLIONTHS
                cell.vectors[OVERALL] = Tally(known, total, total * MILLIONTHS)
            cell.statuses["ok"] = len(written)
            cell.runs_ended = len(written) if turn == len(written[0]) else 0
            for place, run in enumerate(written):
                at = None if said is None else said[place]
                counts = turn_counts(run, turn, at, has_key=said is not None)
                for name, count in counts.items():
                    cell.counts[name] = cell.counts.get(name, 0) + count
            found.append(cell)
    return found


def turn_counts(
    run: str, turn: int, key_turn: int | None = None, *, has_key: bool = False
) -> dict[str, int]:
    """Return what a fidelity profile counts in one turn of a run."""
    if "?" in run[:turn]:
        return {}
    counts = {}
    if has_key:
        counts["key_at_risk"] = int(key_turn is None or key_turn >= turn)
        counts["key_said"] = int(key_turn == turn)
    if turn > 1:
        before, now = run[turn - 2], run[turn - 1]
        at, _ = break_of(run)
        counts["at_risk"] = int(at is None or at >= turn - 1)
        counts["broke"] = int(at == turn - 1)
        counts["after_lapse"] = int(before == "L")
        counts["recovered"] = int(before == "L" and now == ".")
        counts["after_kept"] = int(before == ".")
        counts["relapsed"] = int(before == "." and now == "L")
    return counts
