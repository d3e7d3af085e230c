"""The figures of the fidelity table, as JSON has them. Null is unknown, never zero."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.linearised import Linearised
from socratic_bench.results.formats import share

Interval = tuple[float, float]


class ShareFigure(BaseModel):
    """A share, 0.0 to 1.0."""

    model_config = ConfigDict(frozen=True)

    share: float
    interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""

    scenarios: int
    """The scenarios that it comes from."""

    @classmethod
    def of(cls, found: Linearised[str] | None) -> ShareFigure | None:
        if found is None:
            return None
        return cls(share=found.value, interval=found.interval, scenarios=len(found.deviations))


class CurvePoint(BaseModel):
    """One turn of a survival curve."""

    model_config = ConfigDict(frozen=True)

    turn: int
    at_risk: int
    """The runs to which it could happen in this turn."""

    happened: int
    """The runs to which it happened: they broke, or said the key."""

    left: float
    """The share of runs to which it has not happened after this turn, 0.0 to 1.0."""

    interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""


class HalfLife(BaseModel):
    """The first turn after which half of the runs, or fewer, have had no break."""

    model_config = ConfigDict(frozen=True)

    turn: int | None
    """Null: later than the last turn of the curve."""

    interval: tuple[int | None, int | None] | None
    """The first turns at which the lower and the upper end of the curve's interval are at most one
    half; null for an end later than the last turn, and for both with fewer than five scenarios."""


class LostRuns(BaseModel):
    """Runs whose watch ended before a break and before their last turn."""

    model_config = ConfigDict(frozen=True)

    runs: int
    share: float
    """Of all runs."""

    turns_kept: Interval
    """If each of them broke in its first unwatched turn, and if none broke."""

    def told_of(self, tutor: str) -> str:
        """Say how far the end of these runs could move the turns kept."""
        worst, best = self.turns_kept
        return (
            f"{tutor} lost {share(self.share)} of its runs: the turns kept may be {worst:.1f} if "
            f"each of them broke at once, and {best:.1f} if none did."
        )


class MoreFigure(BaseModel):
    """How much larger a share is than in the turns in which the student works."""

    model_config = ConfigDict(frozen=True)

    difference: float
    interval: Interval | None
    """95 %, paired by scenario; null with fewer than five scenarios."""

    p_value: float
    """Corrected by Holm's method for the kinds of this tutor; 1 with fewer than five scenarios."""

    is_real: bool
    """Whether the p value is at most 5 %."""


class KindFigures(BaseModel):
    """What a tutor does in the turns with one kind of pressure."""

    model_config = ConfigDict(frozen=True)

    kind: str
    lapsed: ShareFigure
    """Of the turns of this kind that are known."""

    more_lapsed: MoreFigure | None
    """Beside `effort`; null for `effort` itself, and where no scenario has both."""

    broke: ShareFigure | None
    """Of the runs at risk in these turns, those that broke there; null without a run at risk."""

    more_broke: MoreFigure | None


class PassPower(BaseModel):
    """pass^k: the chance that so many runs of a scenario all keep to the end."""

    model_config = ConfigDict(frozen=True)

    runs: int
    """k."""

    share: float
    """The mean over scenarios of C(c, k) / C(n, k), for c of n runs that kept to the end."""

    interval: Interval | None
    scenarios: int
    """Those with k runs or more whose end is known."""


class FidelityFigures(BaseModel):
    """One tutor's row. Null is unknown, never zero."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    kind: Literal["reference", "model"]
    """`reference` is a built-in archetype, no real model."""

    rank: int | None
    """The place among the real models with a curve; null for a reference tutor beside real models,
    and with fewer than ten scenarios."""

    rank_interval: tuple[int, int] | None
    """The best and the worst rank that the model may have: models share ranks where chance, or the
    end of lost runs, may explain their difference."""

    turns_kept: float | None
    """The turns before a break that a run keeps, on average, 0 to the horizon; null without a run
    that is known in its first two turns."""

    turns_kept_interval: Interval | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""

    half_life: HalfLife | None
    """Null without a curve, and where more than 20 % of the runs are lost."""

    curve: tuple[CurvePoint, ...]
    """The share of runs without a break, of each turn but the last."""

    started: ShareFigure | None
    """The share of runs that keep the first turn."""

    kept: float | None
    """The share of turns kept, breaks or not, as the leaderboard has it."""

    kept_interval: Interval | None
    recovery: ShareFigure | None
    """The share of lapses that a kept turn follows."""

    flips: float | None
    """How often a run turns from kept to lapsed or back."""

    key_said: ShareFigure | None
    """The share of runs that say the key by their last turn; null where no scenario has a key."""

    key_curve: tuple[CurvePoint, ...]
    """The share of runs that have not said the key, of each turn; empty without a key."""

    kinds: tuple[KindFigures, ...]
    """The kinds of pressure with eight scenarios or more, in their order in the scenarios."""

    pass_power: tuple[PassPower, ...]
    """For k from 1 to the repeats."""

    scenarios: int
    """Those with a run that is known in its first two turns."""

    runs: int
    """Runs that ended, and runs under way that are known in their first two turns."""

    planned_runs: int
    lost: LostRuns | None
    """Null without a lost run."""

    total_cost_usd: float | None
    """Of the responses with a known cost; a reference tutor's cost is simulated."""

    cost_known: float | None
    """The share of ended responses with a known cost."""

    turns: dict[str, tuple[tuple[int, int, int], ...]]
    """By scenario and turn: the runs that kept it, that lapsed, and of which it is unknown."""

    experiment_ids: tuple[str, ...]
    """The experiments that the row is folded from, newest first."""


class PairFigures(BaseModel):
    """How many more turns one model keeps than another, over the scenarios of both."""

    model_config = ConfigDict(frozen=True)

    first: str
    """The id of the model that is further up in the table."""

    second: str
    scenarios: int
    difference: float | None
    """In turns; null without a common scenario."""

    interval: Interval | None
    """95 %, paired by scenario; null with fewer than five scenarios."""

    p_value: float
    """Corrected by Holm's method for all pairs of the table."""

    is_real: bool
    """Whether the models have different ranks: the p value is at most 5 %, ten scenarios tell it,
    and no end of the lost runs could turn their order."""

    is_equivalent: bool
    """Whether the difference is shown to be less than one turn either way (two one-sided tests)."""

    scenarios_to_tell: int | None
    """About how many scenarios like these would show a difference of this size, with 80 % power;
    null if unknown."""
