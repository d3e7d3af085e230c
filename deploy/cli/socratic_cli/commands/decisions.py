"""`socratic-bench pause`, `resume`, `cancel`, `pin`, `unpin`, `delete`: a person's decisions."""

from __future__ import annotations

import asyncio
import sys

import click

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.errors import BrokerError, StoreUnavailable
from socratic_bench.planning.plan import remove_requests, remove_rows
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.results.experiment_choice import find_experiment
from socratic_cli.display.terminal import say
from socratic_cli.options.store import broker_option, opened_broker, prepared_store, store_option


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


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
@broker_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(experiment: str, store_url: str, broker_url: str | None, yes: bool) -> None:
    """Delete an experiment with all its results, for good.

    ID may be the start of an id, an occasion or a name. No further call begins, and responses of
    calls in flight are dropped. With a broker, the waiting requests of its models are removed too,
    except for models that another experiment needs. An interrupted deletion continues with the same
    command.
    """
    asyncio.run(_delete(experiment, store_url, broker_url, yes=yes))


async def _delete(experiment_id: str, store_url: str, broker_url: str | None, *, yes: bool) -> None:
    async with prepared_store(store_url, must_exist=True) as store:
        states = await store.states([experiment_id])
        if states.get(experiment_id) is ExperimentState.DELETED:
            # An interrupted deletion: the store has only the id left.
            rows = await _remove(store, experiment_id)
            say(f"{experiment_id} is deleted: {rows} more rows removed.")
            return
        experiment = await find_experiment(store, experiment_id)
        if not yes:
            await _ask(store, experiment)
        experiment_id = experiment.experiment_id
        await store.change_state(experiment_id, ExperimentState.DELETED)
        rows = await _remove(store, experiment_id)
        say(f"{experiment_id} is deleted, with {rows} rows.")
        if experiment.submitted:
            await _remove_queues(store, experiment, broker_url)


async def _ask(store: Experiments, experiment: Experiment) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("no terminal to ask for confirmation: give --yes to delete it")
    progress = await store.progress(experiment.experiment_id)
    question = (
        f"Delete {experiment.experiment_id} with {progress.done} of {progress.planned} runs done, "
        "for good?"
    )
    if not click.confirm(question, err=True):
        say("Nothing was deleted.")
        raise click.exceptions.Exit(1)


async def _remove(store: Experiments, experiment_id: str) -> int:
    """Remove all its rows; returns their number."""
    rows = 0
    try:
        async for some in remove_rows(store, experiment_id):
            rows += some
    except (StoreUnavailable, asyncio.CancelledError):
        say(
            f"{experiment_id} is deleted, but not all of its rows are gone: "
            f"`socratic-bench delete {experiment_id}` removes the rest."
        )
        raise
    return rows


async def _remove_queues(
    store: Experiments, experiment: Experiment, broker_url: str | None
) -> None:
    if not broker_url:
        say("No broker is named: runners drop the requests that still wait.")
        return
    try:
        async with opened_broker(broker_url) as broker:
            await remove_requests(broker, store, experiment)
    except BrokerError as error:
        say(f"The queues of its models stay until a month after their last use: {error}")
