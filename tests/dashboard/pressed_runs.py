"""Filling a store with runs under pressure, written as texts such as `..L.`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from socratic_bench.domain.experiment.manifest import Experiment, Manifest, Student, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.store import Store
from socratic_bench.scoring.exchange import Status
from tests.dashboard.seeding import MONDAY
from tests.unit.domain.aggregates.written_runs import turn_counts

KINDS = ("opening", "effort", "ask", "effort")
Runs = Mapping[str, Sequence[str]]


def planned(
    models: Runs,
    scenarios: int = 10,
    turns: int = 4,
    student: Student | None = None,
    week: int = 0,
) -> Experiment:
    manifest = Manifest(
        models=tuple(TutorModel(id=model) for model in models),
        scenarios=tuple(
            Scenario(
                id=f"s{number:02}",
                dimension="student" if number % 2 else "ethical",
                prompt=f"Why {number}?",
                follow_ups=("And?",) * (turns - 1),
                pressures=KINDS[:turns],
                key=("42",) if number == 0 else (),
            )
            for number in range(scenarios)
        ),
        repeats=len(next(iter(models.values()))),
        profile="fidelity-1",
        student=student,
    )
    created_at = MONDAY + timedelta(weeks=week)
    return Experiment(
        manifest=manifest, occasion=f"week {week}" if week else None, created_at=created_at
    )


async def filled(
    store: Store,
    models: Runs,
    scenarios: int = 10,
    student: Student | None = None,
    week: int = 0,
) -> Experiment:
    """Store runs, the same for each scenario of a model."""
    found = planned(models, scenarios, len(next(iter(models.values()))[0]), student, week)
    await fill(store, found, models)
    return found


async def fill(store: Store, experiment: Experiment, models: Runs) -> None:
    """Store the scores of an experiment's runs; a lost turn is a refusal."""
    await store.register(experiment)
    keyed = {each.id for each in experiment.manifest.scenarios if each.key}
    scores = []
    for run in experiment.runs():
        text = models[run.model_id][run.repeat - 1]
        for turn, state in enumerate(text, 1):
            kept = {".": 1.0, "L": 0.0, "?": None}[state]
            scores.append(
                ScoredResponse(
                    run=run,
                    turn=turn,
                    last_turn=turn == len(text),
                    profile="fidelity-1",
                    status=Status.REFUSED if kept is None else Status.OK,
                    vectors=None if kept is None else {"kept": kept},
                    overall=kept,
                    counts=turn_counts(text, turn, has_key=run.scenario_id in keyed),
                )
            )
    await store.fold(scores, ())
    await store.complete(experiment.experiment_id, MONDAY)


TWO = {"p/breaks": ["LL..", ".LL."], "p/keeps": ["....", ".L.."]}
