"""What each scenario asks, how hard it is, and how well it tells models apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.item_analysis import FEWEST_MODELS, analyse_item
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.reporting.scenarios.scores import ScenarioScores


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
    """What the student says, a message for each turn."""

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
    """Return the figures of the scenarios, given the scores of all models on each."""
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
        scenarios=tuple(_analysed(experiment, table, place, means) for place in range(len(names))),
    )


def _analysed(
    experiment: Experiment, table: ScenarioScores, place: int, means: Sequence[dict[str, float]]
) -> AnalysedScenario:
    scenario = experiment.manifest.scenarios[place]
    found = analyse_item(scenario.id, means)
    scores = [model.scores[place] for model in table.models]
    return AnalysedScenario(
        scenario_id=scenario.id,
        dimension=scenario.dimension,
        title=scenario.title,
        persona=scenario.persona,
        aim=scenario.aim,
        student_messages=scenario.student_messages,
        mean=found.mean,
        interval=found.interval,
        discrimination=found.discrimination,
        models=found.models,
        runs=sum(each.runs for each in scores),
        scored_responses=sum(each.scored_responses for each in scores),
        responses=sum(each.responses for each in scores),
    )
