"""Filling a store through its port with figures that look like those of a real benchmark."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime

from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.scenario import DIMENSIONS, Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.store import Store
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL

REPEATS = 3
MONDAY = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
SCENARIOS = tuple(
    Scenario(id=f"{dimension}-{number}", dimension=dimension, prompt=f"Prompt {number}")
    for dimension in DIMENSIONS
    for number in range(1, 6)
)
REFERENCES = (
    TutorModel(id="reference/socratic", name="Socratic tutor", options={"latency_ms": 200}),
    TutorModel(id="reference/lecturer", name="Lecturer"),
)


def tutors(count: int) -> tuple[TutorModel, ...]:
    """The two reference tutors and as many models as make `count`."""
    return REFERENCES[:count] + tuple(
        TutorModel(id=f"provider-{number % 7}/tutor-{number}", name=f"Tutor {number}")
        for number in range(1, count - len(REFERENCES) + 1)
    )


def experiment(
    models: Sequence[TutorModel],
    *,
    occasion: str | None = None,
    created_at: datetime = MONDAY,
    repeats: int = REPEATS,
) -> Experiment:
    """An experiment over the default number of scenarios: 15, five per dimension."""
    manifest = Manifest(models=tuple(models), scenarios=SCENARIOS, repeats=repeats)
    return Experiment(manifest=manifest, occasion=occasion, created_at=created_at)


async def seed(
    store: Store, planned: Experiment, *, share: float = 1.0, failing: float = 0.02
) -> None:
    """Register an experiment and fold in the first `share` of its runs.

    A model's figures depend on its id alone; `failing` is the share of runs that fail.
    """
    await store.register(planned)
    every = [
        run for repeat in range(1, planned.manifest.repeats + 1) for run in _runs(planned, repeat)
    ]
    done = every[: round(len(every) * share)]
    scores = [scored(run) for run in done if not _fails(run, failing)]
    failures = [_failure(run) for run in done if _fails(run, failing)]
    for start in range(0, len(scores), 1000):
        await store.fold(scores[start : start + 1000], ())
    await store.fold((), failures)
    if len(done) == len(every):
        await store.complete(planned.experiment_id, planned.created_at)


def _runs(planned: Experiment, repeat: int) -> list[Run]:
    experiment_id = planned.experiment_id
    return [
        Run(
            run_id=run_id(experiment_id, model.id, scenario.id, repeat),
            experiment_id=experiment_id,
            model_id=model.id,
            scenario_id=scenario.id,
            dimension=scenario.dimension,
            repeat=repeat,
        )
        for scenario in planned.manifest.scenarios
        for model in planned.manifest.models
    ]


def _fails(run: Run, share: float) -> bool:
    return random.Random(f"failure {run.run_id}").random() < share


def scored(run: Run) -> ScoredResponse:
    chance = random.Random(run.run_id)
    skill = {"reference/socratic": 0.95, "reference/lecturer": 0.05}.get(
        run.model_id, random.Random(run.model_id).uniform(0.15, 0.9)
    )
    lean = random.Random(f"{run.model_id} {run.dimension}").uniform(-0.1, 0.1)
    easy = random.Random(run.scenario_id).uniform(-0.15, 0.15)
    level = min(1.0, max(0.0, skill + lean + easy * (1 - abs(2 * skill - 1))))
    tokens = min(600, max(8, round(chance.gauss(500 * (1 - level), 40))))
    vectors = {
        "verbosity": 1.0 - min(tokens / 500, 1.0),
        "exploratory": min(1.0, max(0.0, round(chance.gauss(level, 0.2) * 6) / 6)),
        "interrogative": float(chance.random() < level),
    }
    real = not run.model_id.startswith("reference/")
    return ScoredResponse(
        run=run,
        turn=1,
        last_turn=True,
        profile=CANONICAL,
        status=Status.OK,
        vectors=dict(vectors),
        overall=sum(vectors.values()) / len(vectors),
        usage=Usage(visible_output_tokens=tokens, input_tokens=120),
        latency_ms=round(chance.uniform(300, 1800)),
        cost_nanodollars=tokens * 600 if real else 0,
    )


def _failure(run: Run) -> RunFailure:
    return RunFailure(
        run=run, turn=1, profile=CANONICAL, kind="rate_limited", message="429", attempts=4
    )
