"""`socratic-bench rescore`: scores the stored responses of experiments by another profile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from functools import partial
from typing import Final

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.run import Run, batches
from socratic_bench.errors import BrokerError, StoreUnavailable, UnknownExperiment
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.rescoring import BATCH, RescoreCounts, Rescoring
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.ports.stores.experiments import Progress as ExperimentProgress
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.fidelity.fidelity import FIDELITY, counts_breaks, has_turns
from socratic_bench.results.leaderboard.selection import ALL
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.scoring.weighted_profile import is_weighted
from socratic_cli.display.terminal import counted, say, standard_error
from socratic_cli.options.store import broker_option, opened_broker, prepared_store, store_option
from socratic_cli.scoring_workers import scoring_broker

SOURCE: Final = "socratic-bench"
GOES_ON: Final = "The same command continues from here, and scores nothing twice."

LOOK_SECONDS: Final = 0.2
"""Seconds between two looks for missing scores."""

QUIET_SECONDS: Final = 60.0
"""Seconds without a new score after which the command waits no longer for services."""

Waits = Callable[[], Awaitable[str | None]]
"""Waits a moment for scores; returns why no more will come, or None."""


@click.command()
@click.argument("experiments", metavar="EXPERIMENT...", nargs=-1, required=True)
@click.option("--profile", required=True, metavar="NAME", help="The profile to score by.")
@store_option
@broker_option
@click.option("--json", "as_json", is_flag=True, help="Print what was scored as JSON.")
def rescore(
    experiments: tuple[str, ...],
    profile: str,
    store_url: str,
    broker_url: str | None,
    *,
    as_json: bool,
) -> None:
    """Score stored responses by another profile.

    Calls no model. Scores by other profiles stay. EXPERIMENT is an ID, its start, an occasion or a
    name; `all` means every experiment, so that old ones join a series by a new profile. With a
    broker, running services do the work. The same command again scores only what has no score yet.
    """
    if not is_weighted(profile):  # whose remedy is another one
        profile_named(profile)
    try:
        asyncio.run(_rescore(experiments, profile, store_url, broker_url, as_json=as_json))
    except (BrokerError, StoreUnavailable, KeyboardInterrupt):
        say(GOES_ON)
        raise


async def _rescore(
    wanted: Sequence[str], profile: str, store_url: str, broker_url: str | None, *, as_json: bool
) -> None:
    async with (
        prepared_store(store_url, must_exist=True) as store,
        AsyncExitStack() as opened,
    ):
        experiments = await _chosen(store, wanted)
        broker: Broker
        wait: Waits = _no_end_of_work
        if broker_url:
            broker = await opened.enter_async_context(opened_broker(broker_url))
            await broker.declare(WORK_QUEUES, BROADCASTS)
        else:
            own = await opened.enter_async_context(scoring_broker(store, SystemClock()))
            broker, wait = own, partial(end_of_work, own)

        async def publish(events: Sequence[Event]) -> None:
            await broker.publish([to_message(event) for event in events])

        for experiment in experiments:
            rescoring = Rescoring(experiment, profile, store, publish, SystemClock(), SOURCE)
            await _rescore_one(rescoring, wait, as_json=as_json)


async def _chosen(store: Experiments, wanted: Sequence[str]) -> list[Experiment]:
    """Return the experiments of some names, or all of them, oldest first. Raises UnknownExperiment.

    All names are looked up before the first experiment is scored.
    """
    if list(wanted) == [ALL]:
        every = [await store.experiment(each.experiment_id) for each in await store.outlines()]
        found = [each for each in every if each is not None]
        if not found:
            raise UnknownExperiment("this store has no experiment yet: there is nothing to score")
    else:
        found = [await find_experiment(store, each) for each in wanted]
    once = {each.experiment_id: each for each in found}
    return sorted(once.values(), key=lambda each: each.created_at)


async def _rescore_one(rescoring: Rescoring, wait: Waits, *, as_json: bool) -> None:
    experiment, profile, store = rescoring.experiment, rescoring.profile, rescoring.store
    counts = await rescoring.request()
    problem = await scored(rescoring, wait)
    progress = await store.progress(experiment.experiment_id)
    found = await store.scored_profiles([experiment.experiment_id])
    if as_json:
        click.echo(json.dumps(_as_json(experiment, profile, counts)))
    _report(experiment, profile, counts, progress, found.get(experiment.experiment_id, ()))
    if problem is not None:
        say(problem)
        raise click.exceptions.Exit(1)


async def _no_end_of_work() -> str | None:
    await asyncio.sleep(LOOK_SECONDS)
    return None


async def end_of_work(broker: MemoryBroker) -> str | None:
    if broker.outstanding:
        await asyncio.sleep(LOOK_SECONDS)
        return None
    for queue in WORK_QUEUES:
        for letter in await broker.dead_letters(queue.name, limit=1):
            return f"a message could not be handled: {letter.reason}"
    return "the responses were published, and no score came"


async def scored(rescoring: Rescoring, wait: Waits) -> str | None:
    """Wait until each ended run has its scores; returns why some have none, or None."""
    console = standard_error()
    planned = rescoring.experiment.manifest.planned_runs
    with Progress(
        TextColumn("runs scored"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        line = bar.add_task("", total=planned)
        for batch in batches(rescoring.experiment.runs(), BATCH):
            if problem := await _scored_batch(rescoring, batch, wait):
                return problem
            bar.advance(line, len(batch))
    return None


async def _scored_batch(rescoring: Rescoring, runs: Sequence[Run], wait: Waits) -> str | None:
    loop = asyncio.get_running_loop()
    missing, since = len(runs) + 1, loop.time()
    while left := await rescoring.unscored(runs):
        if len(left) < missing:
            missing, since = len(left), loop.time()
        elif loop.time() - since > QUIET_SECONDS:
            return (
                f"No score came for {QUIET_SECONDS:g} seconds: {counted(missing, 'run')} or more "
                "still wait. `socratic-bench dlq list` shows what the services rejected; they go "
                f"on with the rest. {GOES_ON}"
            )
        if (problem := await wait()) and await rescoring.unscored(runs):
            return f"{counted(missing, 'run')} or more have no score: {problem}. {GOES_ON}"
    return None


def _as_json(experiment: Experiment, profile: str, counts: RescoreCounts) -> dict[str, object]:
    return {"experiment_id": experiment.experiment_id, "profile": profile, **asdict(counts)}


def _report(
    experiment: Experiment,
    profile: str,
    counts: RescoreCounts,
    progress: ExperimentProgress,
    profiles: Sequence[str],
) -> None:
    """Report what was scored, and the command that shows it."""
    id_ = experiment.experiment_id
    if counts.runs:
        failed = f" and {counted(counts.failures, 'failed run')}" if counts.failures else ""
        say(
            f"{counted(counts.responses, 'response')}{failed} of {id_} went to {profile}; "
            "no model was called."
        )
    elif counts.already_scored:
        say(f"Every stored response of {id_} had its score by {profile} already.")
    else:
        say(f"{id_} has no stored response yet: there is nothing to score.")
    if progress.done < progress.planned:
        left = progress.planned - progress.done
        say(f"{counted(left, 'run')} of it are still to come: rescore again after the last one.")
    if len(profiles) > 1:
        shown = " ".join(f"--profile {name}" for name in profiles)
        say(f"See the figures: socratic-bench leaderboard --experiment {id_} {shown}")
    if counts_breaks(profile) and has_turns(experiment.manifest):
        named = "" if profile == FIDELITY else f" --profile {profile}"
        say(f"See the turns kept: socratic-bench fidelity {id_}{named}")
