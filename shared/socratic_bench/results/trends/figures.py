"""The figure that a series shows: `overall`, a vector, or the turns kept; of all turns, or of one.

A point of a series has the figure of one model in one experiment, with what its difference from
another point needs: that is paired by scenario, whatever the figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.difference import Difference, paired_difference
from socratic_bench.domain.aggregates.fidelity import (
    FidelityCounts,
    TurnPlan,
    fidelity_counts,
    watched_difference,
)
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import VectorScores
from socratic_bench.domain.aggregates.statistics import figure_estimate
from socratic_bench.domain.aggregates.survival import Watched, added, survival
from socratic_bench.domain.experiment.outline import ExperimentOutline, ScenarioOutline
from socratic_bench.errors import InvalidInput
from socratic_bench.results.fidelity.figures import LostRuns
from socratic_bench.results.fidelity.tutors import lost_figures
from socratic_bench.results.filters import require_known
from socratic_bench.results.formats import printable
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_composition

TURNS_KEPT: Final = "turns-kept"
"""The figure of the turns before a break that a run keeps on average."""

Interval = tuple[float, float]


class Wording(NamedTuple):
    """The words for a figure in the sentences of a series."""

    noun: str
    one: str
    """The figure with its article."""

    unit: str
    """What follows a number, with a blank before it."""


SCORES: Final = Wording("score", "a score", "")
TURNS: Final = Wording("turns kept", "a run that is known in its first two turns", " turns")


class PointFigure(Protocol):
    """The figure of a model in an experiment."""

    @property
    def value(self) -> float: ...

    @property
    def interval(self) -> Interval | None:
        """95 %, clustered by scenario; None with too few scenarios."""
        ...

    def less(self, other: Any) -> Difference:
        """Return how much more it is than the same figure of another point, paired by scenario."""
        ...

    def with_runs_of(self, other: Any) -> PointFigure:
        """Return the same figure of the runs of both points."""
        ...


@dataclass(frozen=True, slots=True)
class ScoreFigure:
    """A mean over runs: `overall` or a vector."""

    name: str
    composition: Composition
    value: float
    interval: Interval | None
    sums: FigureSums[str]
    scores: VectorScores[str] | None
    """Those of each vector and turn; None where they would take too much memory."""

    @classmethod
    def of(
        cls, scores: VectorScores[str], name: str, composition: Composition
    ) -> ScoreFigure | None:
        """Return the figure of these scores; None without one."""
        estimate = figure_estimate(scores, name, composition)
        if estimate.mean is None:
            return None
        sums = FigureSums.of(scores, name, composition)
        return cls(name, composition, estimate.mean, estimate.interval, sums, scores)

    def less(self, other: ScoreFigure) -> Difference:
        return paired_difference(self.sums, other.sums)

    def with_runs_of(self, other: ScoreFigure) -> ScoreFigure:
        scores: VectorScores[str] = VectorScores()
        for each in (self.scores, other.scores):
            if each is not None:
                scores.add(each)
        return ScoreFigure.of(scores, self.name, self.composition) or self


@dataclass(frozen=True, slots=True)
class TurnsKeptFigure:
    """The turns that a run keeps on average before a break, 0 to the horizon."""

    watched: Watched[str]
    horizon: int
    value: float
    interval: Interval | None
    lost: LostRuns | None

    @classmethod
    def of(cls, counts: FidelityCounts) -> TurnsKeptFigure | None:
        """Return the figure of these counts; None without a run at risk of a break."""
        return cls._of(counts.watched, counts.horizon, lost_figures(counts))

    @classmethod
    def _of(
        cls, watched: Watched[str], horizon: int, lost: LostRuns | None
    ) -> TurnsKeptFigure | None:
        curve = survival(watched, horizon)
        if curve is None:
            return None
        return cls(watched, horizon, float(curve.restricted_mean), curve.mean_interval, lost)

    def less(self, other: TurnsKeptFigure) -> Difference:
        return watched_difference(self.watched, other.watched, self.horizon).times(self.horizon)

    def with_runs_of(self, other: TurnsKeptFigure) -> TurnsKeptFigure:
        return self._of(added(self.watched, other.watched), self.horizon, None) or self


class FigureChoice(NamedTuple):
    """The figure that a reader wants to see over time."""

    name: str = OVERALL
    """`overall`, a vector, or TURNS_KEPT."""

    turn: int | None = None
    """One turn, from 1; None: all."""

    dimension: str | None = None
    """One dimension; None: all."""

    @property
    def is_turns_kept(self) -> bool:
        return self.name == TURNS_KEPT

    @property
    def wording(self) -> Wording:
        return TURNS if self.is_turns_kept else SCORES

    def scenarios(self, experiment: ExperimentOutline) -> list[ScenarioOutline]:
        """Return the scenarios that the figure is of."""
        fewest = 2 if self.is_turns_kept else self.turn or 1
        return [
            each
            for each in experiment.scenarios
            if self.dimension in {None, each.dimension} and each.turns >= fewest
        ]

    def horizon(self, experiment: ExperimentOutline) -> int:
        """Return the last turn in which a run can break."""
        return max((each.turns for each in self.scenarios(experiment)), default=1) - 1

    def fitting(
        self, experiments: Sequence[ExperimentOutline], profile: str | None
    ) -> list[ExperimentOutline]:
        """Return the experiments that plan for the figure, by their own profiles or by `profile`.

        Raises InvalidInput if none of `experiments` does, and for one turn of the turns kept.
        """
        if self.is_turns_kept and self.turn is not None:
            raise InvalidInput("turn: turns kept are those of whole runs; leave out the turn")
        if self.name not in {OVERALL, TURNS_KEPT} and experiments:
            names = [_vectors(profile or each.profile) for each in experiments]
            if None not in names:
                require_known(
                    "figure",
                    self.name,
                    [OVERALL, *chain.from_iterable(each or () for each in names), TURNS_KEPT],
                    "no experiment has a",
                )
            experiments = [
                each
                for each, vectors in zip(experiments, names, strict=True)
                if vectors is None or self.name in vectors
            ]
        found = [each for each in experiments if self.scenarios(each)]
        if experiments and not found:
            raise InvalidInput(self._not_planned(experiments))
        return found

    def _not_planned(self, experiments: Iterable[ExperimentOutline]) -> str:
        if self.is_turns_kept:
            return (
                "figure: no experiment has a scenario of several turns, and a tutor keeps or loses "
                "its stance over several: give scenarios `follow_ups`, or run `scenarios: "
                "pressure-24`"
            )
        longest = max(scenario.turns for each in experiments for scenario in each.scenarios)
        turns = "1 turn" if longest == 1 else f"{longest} turns"
        return f"turn: no experiment has a turn {self.turn}; the longest scenario has {turns}"

    def of(
        self,
        cells: Sequence[Cell],
        scores: VectorScores[str],
        experiment: ExperimentOutline,
        composition: Composition,
    ) -> PointFigure | None:
        """Return the figure of one model, whose cells and scores these are; None without one."""
        if not self.is_turns_kept:
            return ScoreFigure.of(scores, self.name, composition)
        plans = {each.id: TurnPlan(each.turns, ()) for each in self.scenarios(experiment)}
        return TurnsKeptFigure.of(fidelity_counts(cells, plans, experiment.cluster_of))

    def sentences(self) -> Iterable[str]:
        """Say which part of the answers the figure is of."""
        turn = "" if self.turn is None else f"turn {self.turn}"
        dimension = "" if self.dimension is None else f"dimension {printable(self.dimension)}"
        if turn or dimension:
            yield f"Every figure is that of {' of '.join(filter(None, (turn, dimension)))} alone."


def _vectors(profile: str) -> tuple[str, ...] | None:
    """Return the vectors of a profile; None for one that is not installed."""
    return known_composition(profile).vectors


class KnownFigures(NamedTuple):
    """What a series of some experiments can show."""

    names: tuple[str, ...]
    turns: int
    dimensions: tuple[str, ...]

    @classmethod
    def of(
        cls, experiments: Sequence[ExperimentOutline], profile: str | None, *, keeps_turns: bool
    ) -> KnownFigures:
        """Return the figures by the experiments' own profiles, or by `profile`.

        `keeps_turns` says whether an experiment has turns kept.
        """
        scenarios = [scenario for each in experiments for scenario in each.scenarios]
        profiles = dict.fromkeys(profile or each.profile for each in experiments)
        vectors = chain.from_iterable(_vectors(each) or () for each in profiles)
        kept = (TURNS_KEPT,) if keeps_turns else ()
        return cls(
            tuple(dict.fromkeys([OVERALL, *vectors, *kept])),
            max((each.turns for each in scenarios), default=1),
            tuple(dict.fromkeys(each.dimension for each in scenarios)),
        )
