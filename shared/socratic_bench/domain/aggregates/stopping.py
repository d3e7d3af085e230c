"""When further repeats of an experiment stop: once every interval is narrow, or cannot become so.

A look comes after each whole repeat of all runs, from the second on. A model goes on while its
95 % interval of `overall` reaches farther than asked on a side, unless endless repeats would not
help it. Repeats shrink the part of the variance that lies within scenarios,

    within = sum_c n_c * s_c^2 / N^2

with the variance s_c^2 of the n_c runs of a scenario; the rest is that between scenarios, and the
reach with endless repeats is the one with V - within in place of V (the figure's, and each part's).
All models go on together: tables compare equal numbers of runs.

Looks at a growing sample stop too early where the variance happens to seem small (Anscombe 1953,
"Sequential Estimation"). Here few looks see mostly the same variance, that between scenarios, which
repeats do not change. `tests/benchmarks/interval_coverage.py` measures the coverage at the stop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.parts import floors, largest
from socratic_bench.domain.aggregates.run_scores import RunScores, VectorScores, run_scores
from socratic_bench.domain.aggregates.statistics import bounded_interval, figure_mean
from socratic_bench.domain.experiment.manifest import Manifest
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the 95 % interval of `overall` reaches from its mean, to the farther side."""

    now: float
    least: float
    """With endless repeats: what scenarios differ by stays."""

    def goes_on(self, interval: float) -> bool:
        """Whether it is wider than asked, and repeats can narrow it to that."""
        return self.least <= interval < self.now


def reach(scores: VectorScores[str], composition: Composition) -> Reach | None:
    """Return the reach of a model; None where it has no interval."""
    found = figure_mean(scores, OVERALL, composition)
    if found is None or found.interval is None or found.variance is None:
        return None
    groups = len(found.residuals)
    kept = [
        floors(
            _between(each.variance, scores.of(each.name)), each.jump, each.mean, groups_of
        ).times(each.weight)
        for each in found.parts
        if (groups_of := len(scores.of(each.name)))
    ]
    between = _between(found.variance, scores.of(OVERALL))
    least = bounded_interval(found.mean, between, groups, largest(kept)).ends
    now, endless = (
        max(found.mean - low, high - found.mean) for low, high in (found.interval.ends, least)
    )
    return Reach(now, min(now, endless))


def reaches_in(
    manifest: Manifest, cells: Iterable[Cell], composition: Composition
) -> dict[str, Reach | None]:
    """Return the reach of each model of an experiment, given its cells."""
    by_model: dict[str, list[Cell]] = {model.id: [] for model in manifest.models}
    for cell in cells:
        if cell.key.profile == manifest.profile:
            by_model[cell.key.model_id].append(cell)

    def cluster(cell: Cell) -> str:
        return manifest.twins.get(cell.key.scenario_id, cell.key.scenario_id)

    return {model: reach(run_scores(own, cluster), composition) for model, own in by_model.items()}


def goes_on(reaches: Iterable[Reach | None], interval: float) -> bool:
    """Return whether further repeats are due; models without an interval do not ask for any."""
    return any(each is not None and each.goes_on(interval) for each in reaches)


def stop_sentence(
    reaches: Mapping[str, Reach | None], interval: float, repeats: int, planned: int
) -> str:
    """Return what the intervals of these models are after so many repeats, and why that is all."""
    known = {model: each for model, each in reaches.items() if each is not None}
    of = f"after {repeats} of {planned} repeats"
    if not known:
        return f"no model has an interval {of}"
    widest = max(known.values(), key=lambda each: each.now)
    told = f"interval {widest.now:.3f} {of}"
    stuck = [model for model, each in known.items() if each.least > interval]
    if stuck and repeats < planned:
        most = max(known[model].least for model in stuck)
        told += (
            f"; repeats cannot narrow that of {', '.join(stuck)} to {interval:g}, but to about "
            f"{most:.3f}: more scenarios would"
        )
    return told


def _between(variance: float, clusters: Mapping[str, RunScores]) -> float:
    """Return the variance of a mean that endless repeats would leave."""
    return max(0.0, variance - _within(list(clusters.values())))


def _within(clusters: Sequence[RunScores]) -> float:
    runs = sum(each.runs for each in clusters)
    known = ((each.runs, each.repeat_variance()) for each in clusters)
    return math.fsum(n * spread[0] for n, spread in known if spread is not None) / runs**2
