"""`socratic-bench watch`: follows an experiment until it is complete, or cannot complete."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import click

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.errors import (
    BrokerClosed,
    BrokerError,
    ExperimentStopped,
    StoreUnavailable,
)
from socratic_bench.hosting.process import stop_signals
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.ports.stores.experiments import Experiments, Progress
from socratic_bench.ports.stores.leases import Leases
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.experiment_status import (
    experiment_status,
    model_progress,
    why_unscored,
)
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_cli.commands.leaderboard import show_comparison
from socratic_cli.commands.status import show_status
from socratic_cli.display.progress import ProgressDisplay
from socratic_cli.display.terminal import how_far, say
from socratic_cli.options.store import (
    broker_option,
    opened_broker,
    readable_store,
    shown_address,
    store_option,
)

LONGEST_PAUSE = 1.0
"""Seconds between two queries of the store without announcements: one may be lost."""

SHORTEST_PAUSE = 0.2
"""The least seconds between two queries, however many announcements arrive."""

STOP_SECONDS = 10.0
"""Seconds that closing the store and the broker may take."""


class WatchStore(Experiments, Leases, Aggregates, Protocol):
    """The roles of the store for the progress of an experiment and its results."""


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
@broker_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def watch(experiment: str, store_url: str, broker_url: str | None, as_json: bool) -> None:
    """Follow an experiment to its end, and show the leaderboard.

    ID may be the start of an id, an occasion or a name. Without a broker it queries the store every
    second. At the deadline, or with too small a budget, it lists the pending runs and ends with
    exit code 1; a cancelled or deleted experiment ends it too. It waits for a paused one. Ctrl-C
    ends the command, not the experiment.
    """
    outcome = asyncio.run(_until_stopped(experiment, store_url, broker_url, as_json=as_json))
    if outcome:
        raise click.exceptions.Exit(outcome)


async def _until_stopped(
    experiment_id: str, store_url: str, broker_url: str | None, *, as_json: bool
) -> int:
    """Watch until the end or Ctrl-C; returns the exit code.

    A shell starts background commands with Ctrl-C ignored, so the handler is set here.
    """
    with stop_signals() as stop:
        watching = asyncio.create_task(
            _watch(experiment_id, store_url, broker_url, as_json=as_json)
        )
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if watching.done():
            return watching.result()
        watching.cancel()
        await asyncio.wait({watching}, timeout=STOP_SECONDS)
    say("Stopped watching: the experiment goes on.")
    return 130


async def _watch(
    experiment_id: str, store_url: str, broker_url: str | None, *, as_json: bool
) -> int:
    clock = SystemClock()
    async with readable_store(store_url) as store:
        experiment = await find_experiment(store, experiment_id)
        say(f"Watching {experiment.experiment_id} (Ctrl-C: it goes on unwatched)")
        async with _announcements(experiment, broker_url) as heard:
            with ProgressDisplay(experiment, store) as display:
                experiment, complete = await follow(
                    experiment, store, clock, heard=heard, on_progress=display.update
                )
        if experiment.state is ExperimentState.DELETED:
            raise ExperimentStopped(stopped_sentence(experiment.experiment_id, experiment.state))
        if not complete:
            await show_status(store, experiment, clock, as_json=as_json)
            return 1
        progress = await _show_result(store, experiment, clock, as_json=as_json)
    say(f"{how_far(progress)}. Results: {shown_address(store_url)}")
    return 0


async def follow(
    experiment: Experiment,
    store: WatchStore,
    clock: Clock,
    *,
    heard: asyncio.Event,
    on_progress: Callable[[Progress], Awaitable[None]],
) -> tuple[Experiment, bool]:
    """Wait until an experiment is complete, its deadline passes, or nothing more can happen.

    Nothing more happens once its budget is exhausted, or it is cancelled or deleted. An
    announcement sets `heard`; this function clears it. Returns the stored experiment, and whether
    it is complete. An unavailable store is waited for until the deadline; then StoreUnavailable is
    raised.
    """
    told = paused = False
    while True:
        complete = over = False
        try:
            progress = await store.progress(experiment.experiment_id)
            experiment = await _as_stored(store, experiment)
            complete = progress.done >= progress.planned and experiment.completed_at is not None
            await on_progress(progress)
            over = complete or await _nothing_is_to_come(store, experiment)
        except StoreUnavailable as error:
            if not told:
                say(f"Waiting for the store: {error}")
            told = True
        if paused is not (experiment.state is ExperimentState.PAUSED):
            paused = not paused
            say(f"{experiment.experiment_id} {'is paused' if paused else 'goes on'}.")
        if over or clock.now() >= experiment.deadline_at:
            # Read again: its deadline may have been postponed.
            experiment = await _as_stored(store, experiment)
            if over or clock.now() >= experiment.deadline_at:
                return experiment, complete
        await _pause(heard)


async def _as_stored(store: Experiments, experiment: Experiment) -> Experiment:
    """Return the stored experiment, even a deleted one."""
    deleted = experiment.model_copy(update={"state": ExperimentState.DELETED})
    return await store.experiment(experiment.experiment_id) or deleted


async def _nothing_is_to_come(store: WatchStore, experiment: Experiment) -> bool:
    is_over = experiment.state in {ExperimentState.CANCELLED, ExperimentState.DELETED}
    return is_over or await _no_budget_is_left(store, experiment)


async def _no_budget_is_left(store: WatchStore, experiment: Experiment) -> bool:
    """Return whether the budget is too small for the remaining runs.

    Calls in flight may still return money, and models without cost go on.
    """
    spending = await store.spending(experiment.experiment_id)
    if not spending.exhausted or spending.in_flight:
        return False
    models = experiment.manifest.models_by_id
    return all(
        _costs(models[each.model_id])
        for each in await model_progress(store, experiment)
        if each.done < each.planned
    )


def _costs(model: TutorModel) -> bool:
    price = model.price
    return price is not None and bool(price.input_per_million or price.output_per_million)


async def _pause(heard: asyncio.Event) -> None:
    # A broadcast only wakes; the store has the figures.
    await asyncio.sleep(SHORTEST_PAUSE)
    await wait_at_most(LONGEST_PAUSE - SHORTEST_PAUSE, heard)
    heard.clear()


@asynccontextmanager
async def _announcements(
    experiment: Experiment, broker_url: str | None
) -> AsyncIterator[asyncio.Event]:
    """Set the event at each announcement of the experiment, if there is a broker."""
    heard = asyncio.Event()
    if not broker_url:
        yield heard
        return
    listening: asyncio.Task[None] | None = None
    try:
        async with opened_broker(broker_url) as broker:
            listening = asyncio.create_task(_listen(broker, experiment.experiment_id, heard))
            yield heard
    finally:
        if listening is not None:
            listening.cancel()
            await asyncio.wait([listening])
    if not listening.cancelled():
        listening.result()


async def _listen(broker: Broker, experiment_id: str, heard: asyncio.Event) -> None:
    try:
        if problems := await broker.inspect(WORK_QUEUES):  # to watch creates nothing
            say(f"Querying the store every second: {problems[0]}.")
            return
        await broker.declare((), BROADCASTS)
        async with broker.listen(*BROADCASTS) as announcements:
            async for message in announcements:
                if message.group == experiment_id:
                    heard.set()
    except BrokerClosed:
        return
    except BrokerError as error:
        say(f"Querying the store every second, since the broker sends no announcements: {error}")


async def _show_result(
    store: WatchStore, experiment: Experiment, clock: Clock, *, as_json: bool
) -> Progress:
    progress = await store.progress(experiment.experiment_id)
    comparison = await model_comparison(store, experiment.experiment_id)
    if as_json:
        found = await experiment_status(store, experiment, clock.now())
        result = found.model_dump(mode="json")
        result["leaderboard"] = comparison.model_dump(mode="json")
        click.echo(json.dumps(result))
    else:
        reasons = await why_unscored(store, comparison)
        show_comparison(comparison, reasons, output="table", detail=False)
    return progress
