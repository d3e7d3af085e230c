"""What the commands have in common that stop experiments, or let them go on."""

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
    """Change the state of the experiment that is meant; returns the one it has now."""
    async with prepared_store(store_url, must_exist=True) as store:
        experiment = await find_experiment(store, experiment_id)
        return experiment, await store.change_state(experiment.experiment_id, to)


def refuse(experiment: Experiment, state: ExperimentState) -> None:
    """Say why the state cannot be changed, and end with exit code 1."""
    say(f"Nothing was changed: {stopped_sentence(experiment.experiment_id, state)}.")
    raise click.exceptions.Exit(1)


def say_stopped(experiment: Experiment, state: ExperimentState) -> None:
    """Say what a stopped experiment does, and how it goes on."""
    experiment_id = experiment.experiment_id
    if experiment.completed_at is not None:
        say(f"{experiment_id} is complete: only runs that are tried again would have gone on.")
    say(
        f"{experiment_id} is {state}: no call of it begins any more; those in flight finish, and "
        f"what they bring is stored. `socratic-bench resume {experiment_id}` lets it go on."
    )
