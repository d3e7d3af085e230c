"""`socratic-bench pause`, `resume`, `cancel`, `pin` and `unpin`: a person's decisions about an
experiment.
"""

from __future__ import annotations

import asyncio

import click

from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_cli.display.terminal import say
from socratic_cli.options.store import prepared_store, store_option


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def pause(experiment: str, store_url: str) -> None:
    """Pause an experiment: its calls wait until `resume`.

    ID may be the start of an id, an occasion or a name. Calls in flight finish, and their responses
    are stored, scored and shown.
    """
    found, state = asyncio.run(_change(experiment, store_url, ExperimentState.PAUSED))
    if state is not ExperimentState.PAUSED:
        _refuse(found, state)
    _say_stopped(found, state)


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def resume(experiment: str, store_url: str) -> None:
    """Resume a paused or cancelled experiment.

    ID may be the start of an id, an occasion or a name. Services request the missing runs by
    themselves, within seconds. An experiment of `run` alone continues with the same `run`.
    """
    found, state = asyncio.run(_change(experiment, store_url, ExperimentState.RESUMED))
    experiment_id = found.experiment_id
    if not state.calls_may_begin:
        _refuse(found, state)
    elif found.completed_at is not None:
        say(f"{experiment_id} is complete: nothing is left to do.")
    elif not found.submitted:
        say(f"{experiment_id} is resumed: `socratic-bench run CONFIG` continues it.")
    elif state is ExperimentState.RESUMED:
        say(
            f"{experiment_id} is resumed: services request its pending runs within seconds. "
            f"Follow it: socratic-bench watch {experiment_id}"
        )
    else:
        say(f"{experiment_id} is not stopped: nothing was changed.")


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def cancel(experiment: str, store_url: str) -> None:
    """Cancel an experiment; its results stay.

    ID may be the start of an id, an occasion or a name. Calls in flight finish, and their responses
    are stored, scored and shown. `socratic-bench resume ID` continues the experiment.
    """
    found, state = asyncio.run(_change(experiment, store_url, ExperimentState.CANCELLED))
    if state is not ExperimentState.CANCELLED:
        _refuse(found, state)
    _say_stopped(found, state)


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def pin(experiment: str, store_url: str) -> None:
    """Pin an experiment: the leaderboard shows it by default.

    ID may be the start of an id, an occasion or a name. The table shows pinned experiments alone;
    of several, those under the conditions of the latest pin.
    """
    found = asyncio.run(_change_pin(experiment, store_url, is_pinned=True))
    say(
        f"{found.experiment_id} is pinned: `socratic-bench leaderboard` and the dashboard show it "
        f"by default. `socratic-bench unpin {found.experiment_id}` ends that."
    )


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def unpin(experiment: str, store_url: str) -> None:
    """Unpin an experiment.

    ID may be the start of an id, an occasion or a name. Without any pin, the leaderboard shows the
    newest complete experiment that is no pilot.
    """
    found = asyncio.run(_change_pin(experiment, store_url, is_pinned=False))
    if found.manifest.pinned_at is None:
        say(f"{found.experiment_id} is not pinned: nothing was changed.")
    else:
        say(f"{found.experiment_id} is no longer pinned.")


async def _change(
    experiment_id: str, store_url: str, to: ExperimentState
) -> tuple[Experiment, ExperimentState]:
    """Change the state of the matching experiment; returns its new state."""
    async with prepared_store(store_url, must_exist=True) as store:
        experiment = await find_experiment(store, experiment_id)
        return experiment, await store.change_state(experiment.experiment_id, to)


def _refuse(experiment: Experiment, state: ExperimentState) -> None:
    """Report why the state cannot change, and end with exit code 1."""
    say(f"Nothing was changed: {stopped_sentence(experiment.experiment_id, state)}.")
    raise click.exceptions.Exit(1)


def _say_stopped(experiment: Experiment, state: ExperimentState) -> None:
    """Report the effect of stopping an experiment, and the command that resumes it."""
    experiment_id = experiment.experiment_id
    if experiment.completed_at is not None:
        say(f"{experiment_id} is complete: only retries of failed runs are affected.")
    say(
        f"{experiment_id} is {state}: no further call begins; calls in flight finish, and their "
        f"responses are stored. `socratic-bench resume {experiment_id}` continues it."
    )


async def _change_pin(experiment_id: str, store_url: str, *, is_pinned: bool) -> Experiment:
    """Pin or unpin the matching experiment; returns it as it was."""
    async with prepared_store(store_url, must_exist=True) as store:
        experiment = await find_experiment(store, experiment_id)
        await store.pin(experiment.experiment_id, SystemClock().now() if is_pinned else None)
        return experiment
