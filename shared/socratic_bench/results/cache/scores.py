"""The figures of experiments over time, kept as long as their cells do not change."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from socratic_bench.domain.aggregates.answers import answers_in
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.run_scores import run_scores
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.results.cache.pools import EXPERIMENTS_PER_QUERY, MOST_CELLS
from socratic_bench.results.experiment_choice import cells_under
from socratic_bench.results.trends.figures import FigureChoice, PointFigure, ScoreFigure
from socratic_bench.scoring.answer_notes import REUSED
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_composition


class ModelScores(NamedTuple):
    """What a point shows of one model in one experiment, under one profile."""

    runs: int
    """Runs that ended."""

    overall: float | None
    coverage: float | None
    figure: PointFigure | None
    """The figure that the series shows; None without one."""

    versions: tuple[str, ...] = ()
    """The versions that the provider reported, by name; none in cells of earlier versions."""

    answers: int = 0
    """Answers with a text; 0 in cells of earlier versions."""

    reused: int = 0
    """Of these, copies of answers that an earlier experiment asked for."""


class ExperimentScores(NamedTuple):
    """The scores of the models of one experiment, and the number of cells that they come from."""

    cells: int
    models: Mapping[str, ModelScores]


NO_SCORES: Final = ModelScores(0, None, None, None)


@dataclass(slots=True)
class KnownScores:
    """The scores of the last answer about all models, by experiment and profile.

    Each belongs to a cell revision: once the revision is another one, the cells are read again.
    """

    _kept: dict[tuple[str, str], tuple[str, ExperimentScores]] = field(default_factory=dict)

    async def of_all_models(
        self, store: Aggregates, experiments: Sequence[ExperimentOutline], profile: str | None
    ) -> dict[str, ExperimentScores]:
        """Return `overall` of each experiment, in order, as long as their cells are few enough.

        `profile` replaces the experiments' own ones.
        """
        revisions = await store.cell_revisions([each.experiment_id for each in experiments])
        known: dict[str, ExperimentScores] = {}
        for each in experiments:
            revision, scores = self._kept.get(_key(each, profile), (None, None))
            if scores is not None and revision == revisions.get(each.experiment_id):
                known[each.experiment_id] = scores
        found = await _read(store, experiments, profile, known, FigureChoice())
        self._kept = {
            _key(each, profile): (revision, scores)
            for each in experiments
            if (scores := found.get(each.experiment_id))
            and (revision := revisions.get(each.experiment_id))
        }
        return found


async def read_scores(
    store: Aggregates,
    experiments: Sequence[ExperimentOutline],
    profile: str | None,
    choice: FigureChoice,
    model_id: str | None = None,
) -> dict[str, ExperimentScores]:
    """Return a figure in each experiment, of all models or one.

    That of one model can be taken together with others.
    """
    return await _read(store, experiments, profile, {}, choice, model_id)


def _key(experiment: ExperimentOutline, profile: str | None) -> tuple[str, str]:
    return experiment.experiment_id, profile or experiment.profile


async def _read(
    store: Aggregates,
    experiments: Sequence[ExperimentOutline],
    profile: str | None,
    known: Mapping[str, ExperimentScores],
    choice: FigureChoice,
    model_id: str | None = None,
) -> dict[str, ExperimentScores]:
    """Return the scores of each experiment, reading the cells of those that are not known."""
    found: dict[str, ExperimentScores] = {}
    cells = 0
    for start in range(0, len(experiments), EXPERIMENTS_PER_QUERY):
        if cells >= MOST_CELLS:
            break
        some = experiments[start : start + EXPERIMENTS_PER_QUERY]
        unknown = [each for each in some if each.experiment_id not in known]
        read: Mapping[str, ExperimentScores] = {}
        if unknown:
            of_unknown = await store.cells([each.experiment_id for each in unknown], model_id)
            # In a thread: the statistics of many cells take long.
            read = await asyncio.to_thread(_folded, unknown, of_unknown, profile, choice, model_id)
        for each in some:
            scores = known.get(each.experiment_id) or read[each.experiment_id]
            found[each.experiment_id] = scores
            cells += scores.cells
    return found


def _folded(
    experiments: Iterable[ExperimentOutline],
    cells: Iterable[Cell],
    profile: str | None,
    choice: FigureChoice,
    model_id: str | None,
) -> dict[str, ExperimentScores]:
    by_experiment: defaultdict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_experiment[cell.key.experiment_id].append(cell)
    found: dict[str, ExperimentScores] = {}
    for each in experiments:
        own, shown = by_experiment[each.experiment_id], profile or each.profile
        by_model: defaultdict[str, list[Cell]] = defaultdict(list)
        for cell in cells_under(own, shown):
            by_model[cell.key.model_id].append(cell)
        composition = known_composition(shown)
        models = {
            model: model_scores(of_model, composition, each, choice)
            for model, of_model in by_model.items()
        }
        if model_id is None:
            models = {model: _kept_small(scores) for model, scores in models.items()}
        found[each.experiment_id] = ExperimentScores(len(own), models)
    return found


def _kept_small(scores: ModelScores) -> ModelScores:
    if isinstance(scores.figure, ScoreFigure):
        return scores._replace(figure=replace(scores.figure, scores=None))
    return scores


def model_scores(
    cells: Iterable[Cell],
    composition: Composition,
    experiment: ExperimentOutline,
    choice: FigureChoice,
) -> ModelScores:
    """Fold the cells of one model under one profile; the choice may leave some of them out."""
    own = [cell for cell in cells if choice.dimension in {None, cell.dimension}]
    shown = [cell for cell in own if choice.turn in {None, cell.key.turn}]
    responses = sum(cell.responses for cell in shown)
    scores = run_scores(shown, experiment.cluster_of)
    figure = choice.of(shown, scores, experiment, composition)
    overall = figure if choice.name == OVERALL else ScoreFigure.of(scores, OVERALL, composition)
    answers = answers_in(shown)
    return ModelScores(
        runs=sum(cell.runs_ended for cell in own),
        overall=None if overall is None else overall.value,
        coverage=sum(cell.scored for cell in shown) / responses if responses else None,
        figure=figure,
        versions=tuple(sorted(answers.versions)),
        answers=answers.count,
        reused=answers.notes.get(REUSED, 0),
    )
