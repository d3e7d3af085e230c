"""The turns that two models keep asking, beside each other: for profiles that count breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.difference import equivalence
from socratic_bench.domain.aggregates.fidelity import (
    TurnPlan,
    at_risk,
    fidelity_counts,
    fidelity_difference,
)
from socratic_bench.domain.aggregates.survival import among, survival
from socratic_bench.results.fidelity.tutors import MARGIN_TURNS


class TurnsKeptPair(BaseModel):
    """How many turns both models keep before a break, over the scenarios of both."""

    model_config = ConfigDict(frozen=True)

    horizon: int
    """The last turn in which a run can break."""

    scenarios: int
    """Those in which both have a run that is known in its first two turns."""

    first: float
    second: float
    difference: float
    """`first` less `second`, in turns."""

    interval: tuple[float, float] | None
    """95 %, paired by scenario; null with fewer than five scenarios."""

    p_value: float
    """Two-sided; 1 with fewer than five scenarios."""

    is_real: bool
    """Whether the p value is at most 5 %."""

    is_equivalent: bool
    """Whether the difference is shown to be less than one turn either way."""


def turns_kept_pair(
    cells: tuple[Sequence[Cell], Sequence[Cell]],
    asked: tuple[Callable[[Cell], tuple[str, str]], Callable[[Cell], tuple[str, str]]],
) -> TurnsKeptPair | None:
    """Compare two models by the cells of each; None where no run of both is at risk of a break.

    `asked` names the scenario of a cell of each, and what its student says.
    """
    questions = tuple(map(_named, asked))
    turns: dict[str, int] = {}
    for own, question in zip(cells, questions, strict=True):
        for cell in own:
            name = question(cell)
            turns[name] = max(turns.get(name, 1), cell.key.turn)
    plans = {name: TurnPlan(count, ()) for name, count in turns.items()}
    one, other = (
        fidelity_counts(own, plans, question)
        for own, question in zip(cells, questions, strict=True)
    )
    common = at_risk(one.watched) & at_risk(other.watched)
    first, second = (survival(among(each.watched, common), each.horizon) for each in (one, other))
    found = fidelity_difference(one, other)
    if first is None or second is None or found.mean is None:
        return None
    horizon, ends = one.horizon, found.interval
    return TurnsKeptPair(
        horizon=horizon,
        scenarios=found.scenarios,
        first=float(first.restricted_mean),
        second=float(second.restricted_mean),
        difference=found.mean * horizon,
        interval=None if ends is None else (ends[0] * horizon, ends[1] * horizon),
        p_value=found.p_value,
        is_real=found.is_real,
        is_equivalent=equivalence(found, MARGIN_TURNS / horizon).is_shown,
    )


def _named(asked: Callable[[Cell], tuple[str, str]]) -> Callable[[Cell], str]:
    return lambda cell: "\n".join(asked(cell))
