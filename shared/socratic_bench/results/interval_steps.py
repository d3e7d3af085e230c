"""How a 95 % interval comes about, step by step, in the shape of `/api/interval`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Cell, millionths
from socratic_bench.domain.aggregates.run_scores import RunScores, VectorScores, run_scores
from socratic_bench.domain.aggregates.statistics import (
    FEWEST_CLUSTERS,
    ClusteredMean,
    PartFloors,
    fewest_scenarios,
    figure_mean,
)
from socratic_bench.results.experiment_choice import cells_under
from socratic_bench.scoring.composition import Composition

WRITTEN: Final = "written"
"""The name of a vector whose scores somebody wrote down."""


class ScenarioStep(BaseModel):
    """What one scenario adds to the variance: it is one cluster."""

    model_config = ConfigDict(frozen=True)

    scenario: str
    runs: int
    """Runs with a score. A run of several turns enters with the mean of its turns."""

    mean: float
    residual: float
    """The sum of its runs' scores, less its runs times the mean of all."""


class PartStep(BaseModel):
    """A vector with which the figure may fall, in scenarios that nobody asked."""

    model_config = ConfigDict(frozen=True)

    name: str
    """The vector; `written` for scores that somebody wrote down."""

    weight: float
    """How far the figure falls where the vector falls from 1 to 0: a mean over its runs."""

    mean: float
    """Over all runs."""

    variance: float
    """Of the mean; 0 for a single scenario."""

    jump: float
    """From 0, for a vector that changes by small degrees, to 1, for one that may fall at once."""

    variance_below: float
    """The least variance towards 0, of the vector itself."""

    variance_above: float
    """The least variance towards 1, of the vector itself."""


class IntervalSteps(BaseModel):
    """Every figure between scores and their 95 % interval, unrounded."""

    model_config = ConfigDict(frozen=True)

    scenarios: tuple[ScenarioStep, ...]
    """The scenarios with a score."""

    runs: int
    mean: float | None
    """Over all runs; null without one."""

    squares: float | None
    """The sum of the residuals' squares."""

    variance: float | None
    """G / (G - 1) * squares / runs^2, with G scenarios; null without an interval."""

    standard_error: float | None
    effective_answers: float | None
    """mean * (1 - mean) / variance: so many independent yes-or-no answers would vary alike;
    null without variance."""

    parts: tuple[PartStep, ...]
    """A vector is its own part. Empty without an interval."""

    jump: float | None
    """That of the only part; null with several."""

    variance_below: float | None
    """The largest of the parts' weight^2 * variance_below: the interval reaches at least quantile
    times its root below the mean."""

    variance_above: float | None
    """The same above the mean."""

    degrees_of_freedom: int | None
    """G - 1."""

    quantile: float | None
    """The two-sided 95 % quantile of Student's t with these degrees of freedom."""

    interval: tuple[float, float] | None
    """Wilson's interval of the mean of so many answers, with this quantile; or the least ones where
    they reach further."""

    interval_note: str | None
    """The reason why there is no interval; null otherwise."""


def interval_steps(
    scores: VectorScores[str], figure: str, composition: Composition
) -> IntervalSteps:
    """Return the steps for `overall` or a vector; scenarios without a score do not count."""
    own = {name: each for name, each in scores.of(figure).items() if each.runs > 0}
    found = figure_mean(scores, figure, composition)
    note = scenarios_missing(len(own), fewest_scenarios(figure, composition))
    return _without_scores(note) if found is None else _steps(own, found, note)


def own_scores(scenarios: Sequence[Sequence[float]]) -> VectorScores[str]:
    """Return scores of one vector that somebody wrote down, one list of runs for each scenario."""
    clusters: dict[str, RunScores] = {}
    for number, scores in enumerate(scenarios, 1):
        cluster = clusters[str(number)] = RunScores()
        for score in scores:
            cluster.add(1, millionths(score))
    return VectorScores({WRITTEN: clusters})


def model_scores(
    cells: Sequence[Cell], model_id: str, profile: str, cluster: Callable[[Cell], str]
) -> VectorScores[str]:
    """Return the scores of a model by vector and scenario, from the cells of its experiment."""
    own = [each for each in cells if each.key.model_id == model_id]
    return run_scores(cells_under(own, profile), cluster)


def scenarios_missing(count: int, fewest: int = FEWEST_CLUSTERS) -> str:
    """Return why there is no interval of so many scenarios."""
    counted = "1 scenario has" if count == 1 else f"{count} scenarios have"
    return f"An interval needs {fewest} scenarios; {counted} a score."


def _steps(filled: Mapping[str, RunScores], found: ClusteredMean, note: str) -> IntervalSteps:
    bounded, variance = found.interval, found.variance
    return IntervalSteps(
        scenarios=tuple(
            ScenarioStep(
                scenario=name, runs=scores.runs, mean=scores.mean or 0.0, residual=residual
            )
            for (name, scores), residual in zip(filled.items(), found.residuals, strict=True)
        ),
        runs=found.runs,
        mean=found.mean,
        squares=found.squares,
        variance=variance,
        standard_error=None if variance is None else variance**0.5,
        effective_answers=bounded.answers if bounded else None,
        parts=tuple(map(_part, found.parts)),
        jump=found.parts[0].jump if len(found.parts) == 1 else None,
        variance_below=bounded.floors.below if bounded else None,
        variance_above=bounded.floors.above if bounded else None,
        degrees_of_freedom=len(filled) - 1 if bounded else None,
        quantile=bounded.quantile if bounded else None,
        interval=bounded.ends if bounded else None,
        interval_note=None if bounded else note,
    )


def _part(part: PartFloors) -> PartStep:
    return PartStep(
        name=part.name,
        weight=part.weight,
        mean=part.mean,
        variance=part.variance,
        jump=part.jump,
        variance_below=part.floors.below,
        variance_above=part.floors.above,
    )


def _without_scores(note: str) -> IntervalSteps:
    return IntervalSteps(
        scenarios=(),
        runs=0,
        mean=None,
        squares=None,
        variance=None,
        standard_error=None,
        effective_answers=None,
        parts=(),
        jump=None,
        variance_below=None,
        variance_above=None,
        degrees_of_freedom=None,
        quantile=None,
        interval=None,
        interval_note=note,
    )
