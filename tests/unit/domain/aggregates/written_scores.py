"""Scores that a test writes down, as the product's own sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from socratic_bench.domain.aggregates.cell import Tally, millionths
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import RunScores, VectorScores
from socratic_bench.scoring.composition import UNKNOWN
from socratic_bench.scoring.profile import OVERALL

V1: Final = ("verbosity", "exploratory", "interrogative")
ABSENT: Final = "-"
"""A vector that does not apply."""


def of_vector(text: str) -> VectorScores[str]:
    """One vector, `overall`: scenarios between bars, a run's turns with slashes; `x6` repeats."""
    found: VectorScores[str] = VectorScores()
    for scenario, runs in _scenarios(text):
        for run in runs:
            for turn, score in enumerate(run.split("/"), 1):
                found.merge(scenario, "student", turn, {OVERALL: tally(float(score))})
    return found


def of_tutor(
    text: str,
    vectors: Sequence[str] = V1,
    weights: Sequence[Mapping[str, float]] = ({},),
) -> VectorScores[str]:
    """The vectors of each run, and the weighted mean as `overall` where the text gives none.

    `weights` are those of each scenario, or of all; a vector that they do not name has 1. The
    dimension of a scenario is the place of its weights.
    """
    found: VectorScores[str] = VectorScores()
    for place, (scenario, runs) in enumerate(_scenarios(text)):
        dimension = min(place, len(weights) - 1)
        for run in runs:
            named = {
                name: float(score)
                for name, score in zip(vectors, run.split(","), strict=True)
                if score != ABSENT
            }
            given = {name: weights[dimension].get(name, 1.0) for name in named}
            mean = sum(named[name] * given[name] for name in named) / sum(given.values())
            scores = {OVERALL: mean} | named
            tallies = {name: tally(score) for name, score in scores.items()}
            found.merge(scenario, str(dimension), 1, tallies)
    return found


def tally(*scores: float) -> Tally:
    """The sums of some scores."""
    found = Tally()
    for score in scores:
        found.add(millionths(score))
    return found


def vector_sums(scores: Mapping[str, RunScores]) -> FigureSums[str]:
    """The sums of a vector, which is its own part."""
    return FigureSums.of(VectorScores({"vector": dict(scores)}), "vector", UNKNOWN)


def _scenarios(text: str) -> list[tuple[str, list[str]]]:
    found: list[list[str]] = []
    for part in text.split("|"):
        *runs, last = part.split()
        repeats = int(last[1:]) if last.startswith("x") else 1
        found += [runs if last.startswith("x") else [*runs, last]] * repeats
    return [(f"s{number:02}", runs) for number, runs in enumerate(found)]
