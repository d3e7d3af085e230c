"""The worth of a difference: whether it is too small to matter, and the parts of its variance."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.difference import Difference
from socratic_bench.domain.aggregates.equivalence import equivalence, scenarios_to_equate
from socratic_bench.domain.aggregates.variance import VarianceSplit


class EquivalenceFigures(BaseModel):
    """Whether the overall difference is too small to matter: two one-sided tests at 5 %."""

    model_config = ConfigDict(frozen=True)

    margin: float
    """The difference that is too small to matter."""

    interval: tuple[float, float] | None
    """90 %, paired by scenario; null with fewer than five scenarios. Within the margin, the models
    are equivalent."""

    p_value: float
    """Of the larger of both tests; 1 with fewer than five scenarios."""

    is_shown: bool
    """Whether the p value is at most 5 %."""

    scenarios_to_show: int | None
    """About how many scenarios like these would show the equivalence of models that do not differ,
    with 80 % power; null if unknown."""

    @classmethod
    def of(cls, difference: Difference, margin: float) -> EquivalenceFigures:
        found = equivalence(difference, margin)
        return cls(
            margin=margin,
            interval=found.interval,
            p_value=found.p_value,
            is_shown=found.is_shown,
            scenarios_to_show=scenarios_to_equate(difference, margin),
        )


class VarianceFigures(BaseModel):
    """The parts of the variance of a score, on the scale from 0 to 1 squared."""

    model_config = ConfigDict(frozen=True)

    scenario: float
    """What both models find hard or easy alike; pairing takes it out of the difference."""

    rest: float
    """How the models differ from scenario to scenario: more scenarios lessen its effect. Without
    repeats it holds their part."""

    repeat: float | None
    """How runs of one scenario differ: more repeats lessen its effect, and more scenarios do; null
    without repeats. Of runs with several turns it is an upper bound."""

    repeats: float
    """The runs of a model in a scenario, as a harmonic mean."""

    buy: Literal["scenarios", "repeats"] | None
    """The part that makes the difference uncertain: `repeats` where they account for more than half
    of its variance; null without repeats to go by."""

    @classmethod
    def of(cls, split: VarianceSplit) -> VarianceFigures:
        share = None if split.repeat is None else split.repeat / split.repeats
        return cls(
            scenario=split.scenario,
            rest=split.rest,
            repeat=split.repeat,
            repeats=split.repeats,
            buy=None if share is None else "repeats" if share > split.rest else "scenarios",
        )
