"""The scenarios of an experiment: what each asks, its scores, and how it tells models apart."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Cell, Tally
from socratic_bench.domain.aggregates.item_analysis import FEWEST_MODELS, ItemFigures, analyse_items
from socratic_bench.domain.aggregates.run_scores import RunScores
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.experiment_choice import ResultStore, cells_under, common_profiles
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_vectors
from socratic_bench.version import __version__


class ScoredScenario(BaseModel):
    """A scenario of the experiment, in the plan's order."""

    model_config = ConfigDict(frozen=True)

    scenario_id: str
    dimension: str
    title: str


class ScenarioScore(BaseModel):
    """What a model scored on one scenario, over all its runs; a run counts once."""

    model_config = ConfigDict(frozen=True)

    overall: float | None
    """0.0 to 1.0, unrounded; null without a scored response."""

    vectors: dict[str, float | None]
    runs: int
    """Runs that ended."""

    scored_responses: int
    responses: int
    """Responses that ended with any status, failures included."""


class ModelScores(BaseModel):
    """The scores of one model, one for each scenario, in the order of the scenarios."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    kind: Literal["reference", "model"]
    scores: tuple[ScenarioScore, ...]


class ScenarioScores(BaseModel):
    """A table of models and scenarios."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    profile: str
    profiles: tuple[str, ...]
    """The profiles that the experiment has scores by, its own one first."""

    vectors: tuple[str, ...]
    scenarios: tuple[ScoredScenario, ...]
    models: tuple[ModelScores, ...]
    version: str = __version__
    """The version of Socratic Bench that made the answer."""


async def scenario_scores(
    store: ResultStore,
    experiment: Experiment,
    models: Iterable[TutorModel],
    profile: str | None = None,
    scenarios: Sequence[Scenario] | None = None,
) -> ScenarioScores:
    """Return the table of these models over the scenarios of their experiment, or some of them.

    `profile` replaces the experiment's own one.
    """
    id_ = experiment.experiment_id
    cells, profiles = await store.cells({id_}), await common_profiles(store, [id_])
    shown = experiment.manifest.scenarios if scenarios is None else scenarios
    profile = profile or experiment.manifest.profile
    return await asyncio.to_thread(_table, id_, cells, models, profile, profiles, shown)


def _table(
    experiment_id: str,
    cells: Iterable[Cell],
    models: Iterable[TutorModel],
    profile: str,
    profiles: tuple[str, ...],
    shown: Sequence[Scenario],
) -> ScenarioScores:
    by_place: defaultdict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells_under(cells, profile):
        by_place[cell.key.model_id, cell.key.scenario_id].append(cell)
    vectors = known_vectors(profile) or tuple(
        sorted({name for each in by_place.values() for cell in each for name in cell.vectors})
    )
    vectors = tuple(name for name in vectors if name != OVERALL)
    return ScenarioScores(
        experiment_id=experiment_id,
        profile=profile,
        profiles=profiles,
        vectors=vectors,
        scenarios=tuple(
            ScoredScenario(scenario_id=each.id, dimension=each.dimension, title=each.title)
            for each in shown
        ),
        models=tuple(
            ModelScores(
                model_id=model.id,
                model_name=model.display_name,
                kind="reference" if is_reference(model) else "model",
                scores=tuple(_score(by_place[model.id, each.id], vectors) for each in shown),
            )
            for model in models
        ),
    )


def _score(turns: list[Cell], vectors: Iterable[str]) -> ScenarioScore:
    return ScenarioScore(
        overall=_mean(turns, OVERALL),
        vectors={name: _mean(turns, name) for name in vectors},
        runs=sum(cell.runs_ended for cell in turns),
        scored_responses=sum(cell.scored for cell in turns),
        responses=sum(cell.responses for cell in turns),
    )


def _mean(turns: list[Cell], vector: str) -> float | None:
    scores = RunScores()
    for cell in turns:
        scores.merge(cell.key.turn, cell.vectors.get(vector, Tally()))
    return scores.mean


class AnalysedScenario(BaseModel):
    """A scenario, and its figures over the models of the experiment."""

    model_config = ConfigDict(frozen=True)

    scenario_id: str
    dimension: str
    title: str
    persona: str
    """The asking person, for readers; the tutor does not see it."""

    aim: str
    """The aim of a Socratic answer, for readers; the tutor does not see it."""

    student_messages: tuple[str, ...]
    """What the student says, a message for each turn; where a model plays the student, the first
    one alone."""

    turns: int

    mean: float | None
    """The mean over the models, 0.0 to 1.0: the lower, the harder; null without a score."""

    interval: tuple[float, float] | None
    """Its 95 % interval, with the models as the sample; null with fewer than three models."""

    discrimination: float | None
    """The corrected item-total correlation, -1 to 1; null with fewer than three models, or where
    they all score the same."""

    models: int
    """The models with a score on it."""

    runs: int
    """Runs that ended, of all tutors."""

    scored_responses: int
    responses: int
    """Responses that ended with any status, failures included."""


class ScenarioAnalysis(BaseModel):
    """The scenarios of an experiment, in the plan's order."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    name: str | None
    occasion: str | None
    profile: str
    profiles: tuple[str, ...]
    """The profiles that the experiment has scores by, its own one first."""

    tutors: Literal["models", "all"]
    """The tutors that the figures are over: the models, or reference tutors too where the
    experiment has fewer than three models."""

    scenarios: tuple[AnalysedScenario, ...]

    def within(self, scenario_ids: Collection[str]) -> ScenarioAnalysis:
        """Return the analysis of these scenarios, with the figures that they have among all."""
        kept = tuple(each for each in self.scenarios if each.scenario_id in scenario_ids)
        return self.model_copy(update={"scenarios": kept})


def scenario_analysis(experiment: Experiment, table: ScenarioScores) -> ScenarioAnalysis:
    """Return the figures of the scenarios, given the scores of all models on each.

    Thousands of scenarios take seconds: call it outside the event loop.
    """
    real = [model for model in table.models if model.kind == "model"]
    are_real = len(real) >= FEWEST_MODELS
    counted = real if are_real else table.models
    names = [each.scenario_id for each in table.scenarios]
    means = [
        {
            name: score.overall
            for name, score in zip(names, model.scores, strict=True)
            if score.overall is not None
        }
        for model in counted
    ]
    return ScenarioAnalysis(
        experiment_id=experiment.experiment_id,
        name=experiment.manifest.name,
        occasion=experiment.occasion,
        profile=table.profile,
        profiles=table.profiles,
        tutors="models" if are_real else "all",
        scenarios=tuple(
            _analysed(experiment, table, place, found)
            for place, found in enumerate(analyse_items(names, means))
        ),
    )


def _analysed(
    experiment: Experiment, table: ScenarioScores, place: int, found: ItemFigures
) -> AnalysedScenario:
    scenario = experiment.manifest.scenarios[place]
    scores = [model.scores[place] for model in table.models]
    return AnalysedScenario(
        scenario_id=scenario.id,
        dimension=scenario.dimension,
        title=scenario.title,
        persona=scenario.persona,
        aim=scenario.aim,
        student_messages=experiment.manifest.fixed_messages(scenario),
        turns=scenario.turns,
        mean=found.mean,
        interval=found.interval,
        discrimination=found.discrimination,
        models=found.models,
        runs=sum(each.runs for each in scores),
        scored_responses=sum(each.scored_responses for each in scores),
        responses=sum(each.responses for each in scores),
    )
