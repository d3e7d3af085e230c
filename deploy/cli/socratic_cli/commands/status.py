"""`socratic-bench status`: shows the progress of experiments, and their pending runs."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import click
from rich.console import Group

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import stopped_sentence
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import BrokerError
from socratic_bench.ports.clock import Clock
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.experiment_status import (
    ExperimentStatus,
    ModelProgress,
    State,
    StatusStore,
    experiment_status,
    experiment_statuses,
    model_progress,
    model_troubles,
    stop_told,
    waiting_in_batches,
)
from socratic_bench.results.pending import PendingRun, PendingStore, WaitsFor, pending_runs
from socratic_cli.display.status import (
    batch_lines,
    experiments_table,
    failure_lines,
    models_table,
    pending_table,
    status_table,
    trouble_lines,
)
from socratic_cli.display.terminal import say, standard_output
from socratic_cli.options.store import broker_option, opened_broker, readable_store, store_option

BROKER_DEADLINE = 5.0
"""Seconds that the broker may take to report dead letters."""

PENDING_SHOWN = 50
"""The most pending runs that `--pending` lists; `--json` lists all."""

FEW_PENDING = 20
"""The most pending runs without `--pending`."""


class DetailedStatusStore(StatusStore, PendingStore, Protocol):
    """The roles of the store that tell how far an experiment is, run by run."""


@click.command()
@click.argument("experiment", metavar="[ID]", required=False)
@store_option
@broker_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, every pending run included.")
@click.option("--pending", is_flag=True, help="List the pending runs, before the deadline too.")
def status(
    experiment: str | None, store_url: str, broker_url: str | None, as_json: bool, pending: bool
) -> None:
    """Show the progress of experiments, and their pending runs.

    Without an ID it lists all experiments. An ID may be the start of an id, an occasion or a name.
    After the deadline, or without budget, it lists the pending runs and the exit code is 1. With a
    broker it reports dead letters.
    """
    if experiment is not None:
        outcome = asyncio.run(_one(experiment, store_url, as_json=as_json, pending=pending))
        asyncio.run(_tell_of_dead_letters(broker_url))
        if outcome:
            raise click.exceptions.Exit(outcome)
        return
    if pending:
        raise click.UsageError("--pending needs the ID of an experiment")
    statuses = asyncio.run(_every(store_url))
    if as_json:
        click.echo(json.dumps({"experiments": [each.model_dump(mode="json") for each in statuses]}))
    elif statuses:
        standard_output().print(experiments_table(statuses))
    else:
        say("There is no experiment in this store yet: socratic-bench submit CONFIG")
    asyncio.run(_tell_of_dead_letters(broker_url))


async def _tell_of_dead_letters(broker_url: str | None) -> None:
    """Report the queues that have any. Only the broker knows them."""
    if not broker_url:
        return
    try:
        async with asyncio.timeout(BROKER_DEADLINE), opened_broker(broker_url) as broker:
            await broker.inspect(WORK_QUEUES)  # which creates nothing
            dead = {each.name: await broker.dead_letter_depth(each.name) for each in WORK_QUEUES}
    except (BrokerError, TimeoutError) as error:
        say(f"Dead letters are unknown: {str(error) or 'the broker does not answer'}.")
        return
    if found := ", ".join(f"{count} in {queue}" for queue, count in dead.items() if count):
        say(f"There are dead letters: {found}. `socratic-bench dlq list` says why.")


async def _every(store_url: str) -> Sequence[ExperimentStatus]:
    now = SystemClock().now()
    async with readable_store(store_url) as store:
        return await experiment_statuses(store, await store.outlines(), now)


async def _one(experiment_id: str, store_url: str, *, as_json: bool, pending: bool) -> int:
    async with readable_store(store_url) as store:
        experiment = await find_experiment(store, experiment_id)
        return await show_status(
            store, experiment, SystemClock(), as_json=as_json, name_pending=pending
        )


async def show_status(
    store: DetailedStatusStore,
    experiment: Experiment,
    clock: Clock,
    *,
    as_json: bool,
    name_pending: bool = False,
) -> int:
    """Print the progress of an experiment, with its pending runs if needed.

    They are listed on request, after the deadline, and once the budget is exhausted. Returns the
    exit code: 1 if runs are pending after the deadline or without budget.
    """
    now = clock.now()
    found = await experiment_status(store, experiment, now)
    models = await model_progress(store, experiment)
    troubles = await model_troubles(store, experiment)
    batches = await waiting_in_batches(store, experiment)
    in_hand = await store.models_in_hand(experiment.experiment_id)
    named = name_pending or found.state in {State.OVERDUE, State.OUT_OF_BUDGET}
    begun = experiment.up_to(experiment.manifest.begun_repeats(found.done))
    pending = pending_runs(begun, store) if named else None
    stop = await stop_told(store, experiment, found.done)
    if as_json:
        head = {**found.model_dump(mode="json"), "stop_when": stop}
        counts = await _print_json(head, models, troubles, batches, in_hand, pending)
    else:
        lines = (*batch_lines(batches), *trouble_lines(troubles), *failure_lines(models))
        standard_output().print(Group(status_table(found, stop), "", models_table(models), *lines))
        counts = await _print_pending(pending, shown=PENDING_SHOWN if name_pending else FEW_PENDING)
    if found.state in {State.PAUSED, State.CANCELLED}:
        say(stopped_sentence(experiment.experiment_id, experiment.state) + ".")
        return 0
    late = bool(counts) and now >= experiment.deadline_at
    out_of_budget = found.state == State.OUT_OF_BUDGET
    if counts:
        _explain(counts, late=late, out_of_budget=out_of_budget)
    if found.left and found.state is State.RUNNING and not (in_hand or batches or as_json):
        say(
            "No runner has a run of it in hand now: the same `socratic-bench run CONFIG` continues "
            "it, or a runner of the services does."
        )
    return 1 if late or out_of_budget else 0


async def _print_pending(
    pending: AsyncIterator[PendingRun] | None, *, shown: int
) -> Mapping[WaitsFor, int]:
    """Print a table of the first pending runs; returns the counts by missing part."""
    counts: Counter[WaitsFor] = Counter()
    named: list[PendingRun] = []
    if pending is not None:
        async for run in pending:
            counts[run.waits_for] += 1
            if len(named) < shown:
                named.append(run)
    console = standard_output()
    if named:
        console.print("", pending_table(named))
    if more := counts.total() - len(named):
        console.print(f"… and {more} more{'' if shown == PENDING_SHOWN else ': --pending'}")
    return counts


async def _print_json(
    found: Mapping[str, object],
    models: Sequence[ModelProgress],
    troubles: Sequence[Trouble],
    batches: Sequence[str],
    in_hand: Mapping[str, int],
    pending: AsyncIterator[PendingRun] | None,
) -> Mapping[WaitsFor, int]:
    """Print one object, run by run: all runs may not fit into memory."""
    counts: Counter[WaitsFor] = Counter()
    head = {
        **found,
        "models_progress": [model.model_dump(mode="json") for model in models],
        "troubles": [trouble.model_dump(mode="json") for trouble in troubles],
        "batches": list(batches),
        "runners_by_model": dict(in_hand),
    }
    click.echo(f'{json.dumps(head)[:-1]}, "pending": ', nl=False)
    if pending is None:
        click.echo("null}")
        return counts
    between = "["
    async for run in pending:
        click.echo(f"{between}{json.dumps(run.model_dump(mode='json'))}", nl=False)
        counts[run.waits_for] += 1
        between = ", "
    click.echo("]}" if counts else "[]}")
    return counts


def _explain(counts: Mapping[WaitsFor, int], *, late: bool, out_of_budget: bool) -> None:
    runs = sum(counts.values())
    lacking = ", ".join(f"{counts[what]} without a {what}" for what in WaitsFor if what in counts)
    say(f"{'1 run is' if runs == 1 else f'{runs} runs are'} pending: {lacking}.")
    if late:
        say("The deadline has passed.")
    if out_of_budget:
        say(
            "The next call may cost more than the budget has left. Raise `budget` in CONFIG: "
            "`socratic-bench submit CONFIG` then requests them again."
        )
    elif late:
        say(
            "Look for dead letters with `socratic-bench dlq list`; "
            "`socratic-bench submit CONFIG` requests the pending runs again."
        )
