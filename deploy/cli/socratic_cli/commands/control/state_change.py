"""Changes the state of an experiment, for the commands that stop and resume one."""

from __future__ import annotations

import click

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_cli.display.terminal import say
from socratic_cli.options.store import prepared_store


async def change(
    experiment_id: str, store_url: str, to: ExperimentState
) -> tuple[Experiment, ExperimentState]:
    """Change the state of the matching experiment; returns its new state."""
    async with prepared_store(store_url, must_exist=True) as store:
        experiment = await find_experiment(store, experiment_id)
        return experiment, await store.change_state(experiment.experiment_id, to)


def refuse(experiment: Experiment, state: ExperimentState) -> None:
    """Report why the state cannot change, and end with exit code 1."""
    say(f"Nothing was changed: {stopped_sentence(experiment.experiment_id, state)}.")
    raise click.exceptions.Exit(1)


def say_stopped(experiment: Experiment, state: ExperimentState) -> None:
    """Report the effect of stopping an experiment, and the command that resumes it."""
    experiment_id = experiment.experiment_id
    if experiment.completed_at is not None:
        say(f"{experiment_id} is complete: only retries of failed runs are affected.")
    say(
        f"{experiment_id} is {state}: no further call begins; calls in flight finish, and their "
        f"responses are stored. `socratic-bench resume {experiment_id}` continues it."
    )
