"""How a 95 % interval comes about, step by step, in the shape of `/api/interval`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import MILLIONTHS, Cell
from socratic_bench.domain.aggregates.run_scores import RunScores, run_scores
from socratic_bench.domain.aggregates.statistics import (
    FEWEST_CLUSTERS,
    ClusteredMean,
    clustered_mean,
)


class ScenarioStep(BaseModel):
    """What one scenario adds to the variance: it is one cluster."""

    model_config = ConfigDict(frozen=True)

    scenario: str
    runs: int
    """Runs with a score. A run of several turns enters with the mean of its turns."""

    mean: float
    residual: float
    """The sum of its runs' scores, less its runs times the mean of all."""


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
    """G / (G - 1) * squares / runs^2, with G scenarios; null with fewer than five."""

    standard_error: float | None
    effective_answers: float | None
    """mean * (1 - mean) / variance: so many independent yes-or-no answers would vary alike. Scores
    that are all 0, or all 1, count one answer for each scenario."""

    excess_kurtosis: float | None
    """The estimated tails of the scenarios' means; null where no formula asks for them."""

    degrees_of_freedom: float | None
    quantile: float | None
    """The two-sided 95 % quantile of Student's t with these degrees of freedom."""

    interval: tuple[float, float] | None
    """Wilson's interval of the mean of so many answers, with this quantile."""

    interval_note: str | None
    """The reason why there is no interval; null otherwise."""


def interval_steps(clusters: Mapping[str, RunScores]) -> IntervalSteps:
    """Return the steps for the scores of each scenario; those without a score do not count."""
    filled = {name: scores for name, scores in clusters.items() if scores.runs > 0}
    found = clustered_mean(list(filled.values()))
    return _without_scores() if found is None else _steps(filled, found)


def own_scores(scenarios: Sequence[Sequence[float]]) -> dict[str, RunScores]:
    """Return scores that somebody wrote down, one list of runs for each scenario."""
    clusters: dict[str, RunScores] = {}
    for number, scores in enumerate(scenarios, 1):
        cluster = clusters[str(number)] = RunScores()
        for score in scores:
            cluster.add(1, round(score * MILLIONTHS))
    return clusters


def model_scores(
    cells: Sequence[Cell], model_id: str, profile: str
) -> dict[str, dict[str, RunScores]]:
    """Return the scores of a model by vector and scenario, from the cells of its experiment."""
    own = (each for each in cells if (each.key.model_id, each.key.profile) == (model_id, profile))
    found = run_scores(own, lambda cell: cell.key.scenario_id)
    return {vector: dict(by_scenario) for vector, by_scenario in found.items()}


def scenarios_missing(count: int) -> str:
    """Return why there is no interval of so many scenarios."""
    counted = "1 scenario has" if count == 1 else f"{count} scenarios have"
    return f"An interval needs {FEWEST_CLUSTERS} scenarios; {counted} a score."


def _steps(filled: Mapping[str, RunScores], found: ClusteredMean) -> IntervalSteps:
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
        excess_kurtosis=bounded.kurtosis if bounded else None,
        degrees_of_freedom=bounded.degrees if bounded else None,
        quantile=bounded.quantile if bounded else None,
        interval=bounded.ends if bounded else None,
        interval_note=None if bounded else scenarios_missing(len(filled)),
    )


def _without_scores() -> IntervalSteps:
    return IntervalSteps(
        scenarios=(),
        runs=0,
        mean=None,
        squares=None,
        variance=None,
        standard_error=None,
        effective_answers=None,
        excess_kurtosis=None,
        degrees_of_freedom=None,
        quantile=None,
        interval=None,
        interval_note=scenarios_missing(0),
    )
