"""`socratic-bench delete`: removes an experiment with all its results."""

from __future__ import annotations

import asyncio
import sys

import click

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import BrokerError, StoreUnavailable
from socratic_bench.planning.plan import remove_requests, remove_rows
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_cli.display.terminal import say
from socratic_cli.options.broker import broker_option, opened_broker
from socratic_cli.options.store import prepared_store, store_option


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
