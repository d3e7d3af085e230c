"""The leaderboard: a fold of cells, best model first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from socratic_bench.domain.aggregates.answers import Answers, answers_in, scenarios_alike
from socratic_bench.domain.aggregates.cell import Cell, Tally
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import run_scores
from socratic_bench.domain.aggregates.statistics import MeanEstimate, figure_estimate
from socratic_bench.domain.aggregates.weightings import vector_means
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.experiment.outline import ExperimentOutline, ModelOutline
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL


@dataclass(frozen=True, slots=True)
class Standing:
    """Statistics of one group of responses: a model's, or those of one dimension of it."""

    runs: int
    """Runs that ended: scored, unscorable or failed."""

    scored: int
    """Responses that have a score."""

    responses: int
    """Responses that ended with any status, failures included."""

    estimates: Mapping[str, MeanEstimate]
    """Per vector, and for `overall`."""

    statuses: Mapping[str, int]
    not_applicable: Mapping[str, int] = field(default_factory=dict)
    """Scored responses that a vector did not apply to, by vector."""

    @property
    def overall(self) -> MeanEstimate:
        return self.estimates[OVERALL]

    @property
    def coverage(self) -> float | None:
        """Scored responses divided by ended responses; None before a response ended."""
        # D-028: divided by planned runs it would show progress, not coverage.
        return None if self.responses == 0 else self.scored / self.responses


@dataclass(frozen=True, slots=True)
class Consumption:
    """Tokens, latency and cost of a model's responses, summed."""

    visible_output_tokens: Tally
    reasoning_tokens: Tally
    input_tokens: Tally
    latency_ms: Tally
    cost_nanodollars: Tally


class RowKey(NamedTuple):
    """The key of a row: a model under one set of conditions."""

    model_id: str
    conditions_id: str


Rows: TypeAlias = Mapping[RowKey, tuple[ExperimentOutline, ...]]
"""The counted experiments of each row, newest first."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model's row of the leaderboard."""

    model: TutorModel
    conditions_id: str
    experiment_ids: tuple[str, ...]
    """The experiments that the row is folded from, newest first."""

    planned_runs: int
    standing: Standing
    dimensions: Mapping[str, Standing]
    consumption: Consumption
    overall: FigureSums[str]
    """The overall scores by scenario, with their parts."""

    vector_means: Mapping[str, Fraction]
    """The exact mean of each vector, where `overall` is their weighted mean under any weights and
    each has a value for every scored response; empty otherwise."""

    turns: Mapping[int, Standing]
    """By turn, where runs have several; a turn is a run's first, second or later exchange."""

    alike: int
    """Scenarios with exactly the same figures, as `scenarios_alike` counts them."""

    answers: Answers
    """The notes on its answers."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The counted cells of some experiments of a row, one for each scenario and turn."""

    experiment_ids: frozenset[str]
    asked: frozenset[tuple[str, str]]
    """The ways in which the experiments ask the model: others may share their conversations."""

    planned_runs: int
    cells: Sequence[Cell]

    def with_more(self, other: Pool) -> Pool:
        """Return the pool of both, which share no conversation."""
        return Pool(
            self.experiment_ids | other.experiment_ids,
            self.asked | other.asked,
            self.planned_runs + other.planned_runs,
            _merged([*self.cells, *other.cells]),
        )


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The models, best first; models without a score last, by name.

    With several conditions, the rows under the newest ones come first.
    """

    vectors: tuple[str, ...]
    dimensions: tuple[str, ...]
    profile: str
    rows: tuple[ModelRow, ...]
    experiments: tuple[ExperimentOutline, ...]
    """The experiments the rows come from, newest first."""

    @property
    def winner(self) -> ModelRow | None:
        """The first row, if it has a score and all rows have the same conditions."""
        first = self.rows[0] if self.rows and len(self.conditions) == 1 else None
        return first if first is not None and first.standing.scored else None

    @property
    def conditions(self) -> tuple[str, ...]:
        """The distinct conditions in the table; figures under different ones do not compare."""
        return tuple(dict.fromkeys(e.conditions_id for e in self.experiments))


def build_leaderboard(
    selection: Rows,
    cells: Iterable[Cell],
    profile: str,
    composition: Composition,
    dimension: str | None = None,
    pools: Mapping[RowKey, Pool] = MappingProxyType({}),
) -> Leaderboard:
    """Fold `cells` into a leaderboard of the selected experiments, under one profile.

    `selection` gives each row's experiments, newest first; the fold skips cells of other
    experiments, models or profiles. A conversation that several experiments share counts once, in
    the experiment with the most ended runs: the others may hold adopted copies. `composition` is
    the profile's; where it names no vectors, the cells do. With a `dimension` every figure is that
    of its scenarios alone, planned runs and ranks included. A pool of a row replaces the cells of
    its experiments, which share no conversation with the others; it has all dimensions.
    """
    rows_of = {
        (experiment.experiment_id, key.model_id): key
        for key, experiments in selection.items()
        for experiment in experiments
    }
    by_row: defaultdict[RowKey, list[Cell]] = defaultdict(list)
    for cell in cells:
        row = rows_of.get((cell.key.experiment_id, cell.key.model_id))
        is_counted = cell.key.profile == profile and dimension in {None, cell.dimension}
        if row is not None and is_counted:
            by_row[row].append(cell)
    rows = [
        _model_row(key, experiments, by_row[key], composition, dimension, pools.get(key))
        for key, experiments in selection.items()
    ]
    found = {e.experiment_id: e for chosen_ones in selection.values() for e in chosen_ones}
    experiments = tuple(
        sorted(found.values(), key=lambda e: (e.created_at, e.experiment_id), reverse=True)
    )
    places = {
        conditions: place
        for place, conditions in enumerate(dict.fromkeys(e.conditions_id for e in experiments))
    }
    rows.sort(key=lambda row: (places[row.conditions_id], _best_first(row)))
    return Leaderboard(
        vectors=composition.vectors or _vectors_named_in(rows),
        dimensions=_dimensions(experiments, dimension),
        profile=profile,
        rows=tuple(rows),
        experiments=experiments,
    )


def _model_row(
    key: RowKey,
    experiments: tuple[ExperimentOutline, ...],
    cells: Sequence[Cell],
    composition: Composition,
    dimension: str | None,
    settled: Pool | None,
) -> ModelRow:
    known: frozenset[str] = frozenset() if settled is None else settled.experiment_ids
    others = [each for each in experiments if each.experiment_id not in known]
    pool = pooled(key.model_id, others, cells, dimension)
    if settled is not None:
        pool = settled.with_more(pool)
    cells = pool.cells
    by_dimension: defaultdict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_dimension[cell.dimension].append(cell)
    # Experiments of one row have the same scenarios.
    cluster = experiments[0].cluster_of
    scores = run_scores(cells, cluster)
    return ModelRow(
        model=_outline_of(key.model_id, experiments[0]).model(),
        conditions_id=key.conditions_id,
        experiment_ids=tuple(experiment.experiment_id for experiment in experiments),
        planned_runs=pool.planned_runs,
        standing=standing(cells, composition, cluster),
        dimensions={
            each: standing(by_dimension[each], composition, cluster)
            for each in _dimensions(experiments, dimension)
        },
        consumption=_consumption(cells),
        overall=FigureSums.of(scores, OVERALL, composition),
        vector_means=vector_means(cells, scores, composition),
        turns=_by_turn(cells, composition, cluster),
        alike=scenarios_alike(cells),
        answers=answers_in(cells),
    )


def pooled(
    model_id: str,
    experiments: Sequence[ExperimentOutline],
    cells: Sequence[Cell],
    dimension: str | None = None,
) -> Pool:
    """Pool the counted cells of a model in these experiments, newest first."""
    counted = _counted(model_id, experiments, cells, dimension)
    own = [cell for cell in cells if (cell.key.experiment_id, cell.key.scenario_id) in counted]
    return Pool(
        frozenset(each.experiment_id for each in experiments),
        frozenset(asked_of(model_id, each) for each in experiments),
        sum(counted.values()),
        own if len(experiments) == 1 else _merged(own),
    )


def _merged(cells: Iterable[Cell]) -> list[Cell]:
    """Return one cell for each scenario and turn: each statistic of a row pools experiments."""
    merged: dict[tuple[str, int], Cell] = {}
    for cell in cells:
        place = (cell.key.scenario_id, cell.key.turn)
        known = merged.get(place)
        if known is None:
            known = merged[place] = Cell(cell.key, cell.dimension)
        known.merge(cell)
    return list(merged.values())


def _counted(
    model_id: str,
    experiments: Sequence[ExperimentOutline],
    cells: Sequence[Cell],
    dimension: str | None,
) -> dict[tuple[str, str], int]:
    """Return the planned runs of each counted conversation, by experiment and scenario."""
    # D-371: otherwise experiments that share adopted answers count them twice.
    ended: defaultdict[tuple[str, str], int] = defaultdict(int)
    for cell in cells:
        ended[cell.key.experiment_id, cell.key.scenario_id] += cell.runs_ended
    counted: dict[object, tuple[str, str]] = {}
    repeats: dict[tuple[str, str], int] = {}
    is_alone = len(experiments) == 1
    for experiment in experiments:
        asked = asked_of(model_id, experiment)
        for scenario in experiment.scenarios:
            if dimension not in {None, scenario.dimension}:
                continue
            candidate = (experiment.experiment_id, scenario.id)
            repeats[candidate] = experiment.repeats
            key = scenario.id if is_alone else (*asked, scenario.said)
            known = counted.setdefault(key, candidate)
            if ended[known] < ended[candidate]:
                counted[key] = candidate
    return {pair: repeats[pair] for pair in counted.values()}


def asked_of(model_id: str, experiment: ExperimentOutline) -> tuple[str, str]:
    """Return how an experiment asks a model: experiments that differ share no conversation."""
    return _outline_of(model_id, experiment).asked


def _outline_of(model_id: str, experiment: ExperimentOutline) -> ModelOutline:
    return next(model for model in experiment.models if model.id == model_id)


def standing(
    cells: Sequence[Cell], composition: Composition, cluster: Callable[[Cell], str]
) -> Standing:
    """Return the statistics of the responses in `cells`, with intervals by their clusters."""
    statuses: defaultdict[str, int] = defaultdict(int)
    not_applicable: defaultdict[str, int] = defaultdict(int)
    for cell in cells:
        for vector, count in cell.not_applicable.items():
            not_applicable[vector] += count
        for status, count in cell.statuses.items():
            statuses[status] += count
    scores = run_scores(cells, cluster)
    return Standing(
        runs=sum(cell.runs_ended for cell in cells),
        scored=sum(cell.scored for cell in cells),
        responses=sum(cell.responses for cell in cells),
        estimates={
            figure: figure_estimate(scores, figure, composition)
            for figure in dict.fromkeys((OVERALL, *scores.vectors))
        },
        statuses=dict(sorted(statuses.items())),
        not_applicable=dict(sorted(not_applicable.items())),
    )


def _by_turn(
    cells: Sequence[Cell], composition: Composition, cluster: Callable[[Cell], str]
) -> dict[int, Standing]:
    """Return the statistics of each turn; none where every run has one turn."""
    turns = sorted({cell.key.turn for cell in cells})
    if turns in ([], [1]):
        return {}
    return {
        turn: standing([each for each in cells if each.key.turn == turn], composition, cluster)
        for turn in turns
    }


def _consumption(cells: Iterable[Cell]) -> Consumption:
    total = Consumption(Tally(), Tally(), Tally(), Tally(), Tally())
    for cell in cells:
        total.visible_output_tokens.merge(cell.visible_output_tokens)
        total.reasoning_tokens.merge(cell.reasoning_tokens)
        total.input_tokens.merge(cell.input_tokens)
        total.latency_ms.merge(cell.latency_ms)
        total.cost_nanodollars.merge(cell.cost_nanodollars)
    return total


def _best_first(row: ModelRow) -> tuple[bool, float, str]:
    mean = row.standing.overall.mean
    return (mean is None, -(mean or 0.0), row.model.id)


def _dimensions(
    experiments: Iterable[ExperimentOutline], only: str | None = None
) -> tuple[str, ...]:
    """Return the dimensions in the order in which the scenarios first name them, or `only` one."""
    return tuple(
        dict.fromkeys(
            scenario.dimension
            for experiment in experiments
            for scenario in experiment.scenarios
            if only in {None, scenario.dimension}
        )
    )


def _vectors_named_in(rows: Iterable[ModelRow]) -> tuple[str, ...]:
    named = {vector for row in rows for vector in row.standing.estimates}
    return tuple(sorted(named - {OVERALL}))
