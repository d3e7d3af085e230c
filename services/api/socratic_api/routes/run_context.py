"""What surrounds a run in its plan: the scenario, the system prompt and the runs beside it."""

from __future__ import annotations

from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run
from socratic_bench.domain.scenario import Scenario
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.providers.registry import is_reference, simulated_latency_ms


class RunStore(Experiments, Responses, Aggregates, Protocol):
    """The roles of the store with the plans, the responses and the profiles of experiments."""


class RunLink(BaseModel):
    """Another run of the plan, which may not have ended."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    model_id: str
    model_name: str
    scenario_id: str
    repeat: int


class ScenarioText(BaseModel):
    """What the scenario of a run says to its readers; the tutor sees the student's messages."""

    model_config = ConfigDict(frozen=True)

    title: str
    persona: str
    aim: str
    turns: int
    """Planned turns."""


class RunContext(BaseModel):
    """The plan around a run."""

    model_config = ConfigDict(frozen=True)

    experiment_title: str | None
    """The experiment's name, or else its occasion; null without both."""

    model_name: str
    kind: Literal["reference", "model"]
    """`reference` is a built-in archetype, no real model."""

    simulated_latency_ms: int
    profile: str
    student: str | None
    """The model that plays the student, with its prompt and seed; null: the messages are fixed."""

    system_prompt: str
    scenario: ScenarioText
    repeats: int
    """Planned runs of the model on the scenario."""

    previous: RunLink | None
    """The run of the same model before this one: scenario by scenario, then repeat by repeat."""

    next: RunLink | None
    previous_model: RunLink | None
    """The same repeat of the same scenario by the model before this one in the plan."""

    next_model: RunLink | None


async def run_context(store: Experiments, run: Run) -> RunContext | None:
    """Return the plan around a run; None for a run whose plan the store no longer has."""
    experiment = await store.experiment(run.experiment_id)
    if experiment is None:
        return None
    manifest = experiment.manifest
    model = manifest.models_by_id.get(run.model_id)
    scenario = manifest.scenarios_by_id.get(run.scenario_id)
    if model is None or scenario is None:
        return None
    at_model = manifest.models.index(model)
    place = manifest.scenarios.index(scenario) * manifest.due_repeats + run.repeat - 1
    return RunContext(
        experiment_title=manifest.name or experiment.occasion,
        model_name=model.display_name,
        kind="reference" if is_reference(model) else "model",
        simulated_latency_ms=simulated_latency_ms(model),
        profile=manifest.profile,
        student=None if manifest.student is None else manifest.student.told,
        system_prompt=manifest.system_prompt_of(model),
        scenario=ScenarioText(
            title=scenario.title,
            persona=scenario.persona,
            aim=scenario.aim,
            turns=scenario.turns,
        ),
        repeats=manifest.due_repeats,
        previous=_at_place(experiment, run.model_id, place - 1),
        next=_at_place(experiment, run.model_id, place + 1),
        previous_model=_by_model(experiment, at_model - 1, scenario, run.repeat),
        next_model=_by_model(experiment, at_model + 1, scenario, run.repeat),
    )


def _at_place(experiment: Experiment, model_id: str, place: int) -> RunLink | None:
    manifest = experiment.manifest
    if not 0 <= place < len(manifest.scenarios) * manifest.due_repeats:
        return None
    at_scenario, repeat = divmod(place, manifest.due_repeats)
    return _link(experiment, model_id, manifest.scenarios[at_scenario], repeat + 1)


def _by_model(
    experiment: Experiment, place: int, scenario: Scenario, repeat: int
) -> RunLink | None:
    models = experiment.manifest.models
    if not 0 <= place < len(models):
        return None
    return _link(experiment, models[place].id, scenario, repeat)


def _link(experiment: Experiment, model_id: str, scenario: Scenario, repeat: int) -> RunLink:
    run = experiment.run(model_id, scenario, repeat)
    return RunLink(
        run_id=run.run_id,
        model_id=model_id,
        model_name=experiment.manifest.models_by_id[model_id].display_name,
        scenario_id=scenario.id,
        repeat=repeat,
    )
