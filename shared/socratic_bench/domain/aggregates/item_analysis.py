"""Item analysis: how hard a scenario is, and how well it tells models apart.

A scenario is an item of a test, and a model a person who takes it. Difficulty is the mean over the
models; its interval is Student's, with the models as the sample. Discrimination is the corrected
item-total correlation: Pearson's, between a model's mean on the scenario and its mean on all other
scenarios. The correction leaves the scenario out of the total, which otherwise correlates with
itself (Henrysson 1963, "Correction of item-total correlations in item analysis", Psychometrika 28).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Final, NamedTuple

from socratic_bench.domain.aggregates.statistics import CONFIDENCE, student_t_quantile

FEWEST_MODELS: Final = 3
"""The fewest models for an interval or a correlation: two always lie on a line."""

Scores = Mapping[str, float]
"""The mean of one model on each scenario with a score."""


class ItemFigures(NamedTuple):
    """The figures of one scenario."""

    mean: float | None
    """The mean over the models with a score: the lower, the harder; None without one."""

    interval: tuple[float, float] | None
    """The 95 % interval of the mean; None with fewer than FEWEST_MODELS models."""

    discrimination: float | None
    """From -1 to 1; near 0 the scenario says nothing about a model's other scores, and below 0 the
    better models do worse on it. None with fewer than FEWEST_MODELS models, or where all models
    score the same on it, or on the others."""

    models: int
    """The models with a score on it."""


def analyse_items(scenarios: Iterable[str], models: Sequence[Scores]) -> list[ItemFigures]:
    """Return the figures of each of these scenarios among the models."""
    totals = [(scores, math.fsum(scores.values())) for scores in models]
    return [_figures(scenario, totals) for scenario in scenarios]


def _figures(scenario: str, totals: Sequence[tuple[Scores, float]]) -> ItemFigures:
    scored = [(scores, total) for scores, total in totals if scenario in scores]
    own = [scores[scenario] for scores, _ in scored]
    if not own:
        return ItemFigures(None, None, None, 0)
    return ItemFigures(fmean(own), _interval(own), _discrimination(scenario, scored), len(own))


def _interval(means: Sequence[float]) -> tuple[float, float] | None:
    if len(means) < FEWEST_MODELS:
        return None
    quantile = student_t_quantile((1 + CONFIDENCE) / 2, len(means) - 1)
    centre, reach = fmean(means), quantile * stdev(means) / math.sqrt(len(means))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def _discrimination(scenario: str, totals: Sequence[tuple[Scores, float]]) -> float | None:
    pairs = [
        (scores[scenario], (total - scores[scenario]) / (len(scores) - 1))
        for scores, total in totals
        if len(scores) > 1
    ]
    if len(pairs) < FEWEST_MODELS:
        return None
    own, rest = zip(*pairs, strict=True)
    return _correlation(own, rest)


def _correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Pearson's correlation; None where one side does not vary beyond rounding."""
    centre, middle = fmean(one), fmean(other)
    across = math.fsum((a - centre) ** 2 for a in one)
    along = math.fsum((b - middle) ** 2 for b in other)
    if min(across, along) < _ROUNDING:
        return None
    both = math.fsum((a - centre) * (b - middle) for a, b in zip(one, other, strict=True))
    return max(-1.0, min(1.0, both / math.sqrt(across * along)))


_ROUNDING: Final = 1e-18
"""A sum of squares below this is rounding: scores are exact to millionths."""
