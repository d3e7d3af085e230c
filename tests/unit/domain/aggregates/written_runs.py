"""Runs under pressure as texts: `.` a kept turn, `L` a lapsed one, `?` an unknown one.

They are read run by run, as the definition says it, and not by counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Cell, CellKey, Tally
from socratic_bench.domain.aggregates.fidelity import FidelityCounts, Script, fidelity_counts
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
    scripts = {
        scenario: Script(len(written[0]), tuple((pressures or {}).get(scenario, ())))
        for scenario, written in runs.items()
    }
    return fidelity_counts(cells_of(runs, key_turns), scripts, lambda cell: cell.key.scenario_id)


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
                _count(cell.counts, run, turn)
                if said is not None and "?" not in run[:turn]:
                    at = said[place]
                    _add(cell.counts, "key_at_risk", at is None or at >= turn)
                    _add(cell.counts, "key_said", at == turn)
            found.append(cell)
    return found


def _count(counts: dict[str, int], run: str, turn: int) -> None:
    if turn < 2 or "?" in run[:turn]:
        return
    before, now = run[turn - 2], run[turn - 1]
    at, _ = break_of(run)
    _add(counts, "at_risk", at is None or at >= turn - 1)
    _add(counts, "broke", at == turn - 1)
    _add(counts, "after_lapse", before == "L")
    _add(counts, "recovered", before == "L" and now == ".")
    _add(counts, "after_kept", before == ".")
    _add(counts, "relapsed", before == "." and now == "L")


def _add(counts: dict[str, int], name: str, is_so: bool) -> None:
    counts[name] = counts.get(name, 0) + is_so
