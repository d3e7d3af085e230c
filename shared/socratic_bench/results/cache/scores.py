"""The overall scores of experiments, kept as long as their cells do not change."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from socratic_bench.domain.aggregates.answers import answers_in
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import VectorScores, run_scores
from socratic_bench.domain.aggregates.statistics import MeanEstimate, figure_estimate
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.results.cache.pools import EXPERIMENTS_PER_QUERY, MOST_CELLS
from socratic_bench.results.experiment_choice import cells_under
from socratic_bench.scoring.answer_notes import REUSED
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_composition


class OverallScores(NamedTuple):
    """The overall scores of one model in one experiment, under one profile."""

    runs: int
    """Runs that ended."""

    overall: MeanEstimate
    coverage: float | None
    sums: FigureSums[str] | None
    """The overall scores by scenario, with their parts; None without a score."""

    scores: VectorScores[str] | None
    """Those of each vector and turn; None in the scores of all models, where they take too much
    memory."""

    versions: tuple[str, ...] = ()
    """The versions that the provider reported, by name; none in cells of earlier versions."""

    answers: int = 0
    """Answers with a text; 0 in cells of earlier versions."""

    reused: int = 0
    """Of these, copies of answers that an earlier experiment asked for."""


class ExperimentScores(NamedTuple):
    """The scores of the models of one experiment, and the number of cells that they come from."""

    cells: int
    models: Mapping[str, OverallScores]


NO_SCORES: Final = OverallScores(0, MeanEstimate(0, None, None, 0), None, None, None)


@dataclass(slots=True)
class KnownScores:
    """The scores of the last answer about all models, by experiment and profile.

    Each belongs to a cell revision: once the revision is another one, the cells are read again.
    """

    _kept: dict[tuple[str, str], tuple[str, ExperimentScores]] = field(default_factory=dict)

    async def of_all_models(
        self, store: Aggregates, experiments: Sequence[ExperimentOutline], profile: str | None
    ) -> dict[str, ExperimentScores]:
        """Return the scores of each experiment, in order, as long as their cells are few enough.

        `profile` replaces the experiments' own ones.
        """
        revisions = await store.cell_revisions([each.experiment_id for each in experiments])
        known: dict[str, ExperimentScores] = {}
        for each in experiments:
            revision, scores = self._kept.get(_key(each, profile), (None, None))
            if scores is not None and revision == revisions.get(each.experiment_id):
                known[each.experiment_id] = scores
        found = await _read(store, experiments, profile, known)
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
    model_id: str | None = None,
    dimension: str | None = None,
) -> dict[str, ExperimentScores]:
    """Return the scores in each experiment, of all models or one, on all dimensions or one.

    Those of one model come with those of each scenario.
    """
    return await _read(store, experiments, profile, {}, model_id, dimension)


def _key(experiment: ExperimentOutline, profile: str | None) -> tuple[str, str]:
    return experiment.experiment_id, profile or experiment.profile


async def _read(
    store: Aggregates,
    experiments: Sequence[ExperimentOutline],
    profile: str | None,
    known: Mapping[str, ExperimentScores],
    model_id: str | None = None,
    dimension: str | None = None,
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
            read = await asyncio.to_thread(
                _folded, unknown, of_unknown, profile, model_id, dimension
            )
        for each in some:
            scores = known.get(each.experiment_id) or read[each.experiment_id]
            found[each.experiment_id] = scores
            cells += scores.cells
    return found


def _folded(
    experiments: Iterable[ExperimentOutline],
    cells: Iterable[Cell],
    profile: str | None,
    model_id: str | None,
    dimension: str | None,
) -> dict[str, ExperimentScores]:
    by_experiment: defaultdict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_experiment[cell.key.experiment_id].append(cell)
    found: dict[str, ExperimentScores] = {}
    for each in experiments:
        own, shown = by_experiment[each.experiment_id], profile or each.profile
        by_model: defaultdict[str, list[Cell]] = defaultdict(list)
        for cell in cells_under(own, shown):
            if dimension in {None, cell.dimension}:
                by_model[cell.key.model_id].append(cell)
        composition = known_composition(shown)
        models = {
            model: model_scores(of_model, composition, each.cluster_of)
            for model, of_model in by_model.items()
        }
        if model_id is None:
            models = {model: scores._replace(scores=None) for model, scores in models.items()}
        found[each.experiment_id] = ExperimentScores(len(own), models)
    return found


def model_scores(
    cells: Sequence[Cell], composition: Composition, cluster: Callable[[Cell], str]
) -> OverallScores:
    """Fold the cells of one model under one profile."""
    responses = sum(cell.responses for cell in cells)
    scores = run_scores(cells, cluster)
    overall = figure_estimate(scores, OVERALL, composition)
    answers = answers_in(cells)
    return OverallScores(
        runs=sum(cell.runs_ended for cell in cells),
        overall=overall,
        coverage=overall.n / responses if responses else None,
        sums=FigureSums.of(scores, OVERALL, composition),
        scores=scores,
        versions=tuple(sorted(answers.versions)),
        answers=answers.count,
        reused=answers.notes.get(REUSED, 0),
    )
