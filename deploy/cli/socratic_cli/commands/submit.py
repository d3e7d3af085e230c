"""`socratic-bench submit`: requests a benchmark from services that run elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import click
from click.core import ParameterSource
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import BrokerError, MessageTooLarge, StoreUnavailable
from socratic_bench.events.codec import Event, to_message
from socratic_bench.events.event_types import RunRequested
from socratic_bench.planning.config_file.changes import Changes
from socratic_bench.planning.config_file.config import BenchmarkConfig, read_config
from socratic_bench.planning.estimate import look_into
from socratic_bench.planning.model_catalogue import RegisteredModels, endpoints_to_list
from socratic_bench.planning.plan import PlanCounts, resume
from socratic_bench.ports.broker import Broker
from socratic_bench.providers.registry import spec_of
from socratic_bench.results.formats import moment
from socratic_cli.display.estimate import prospect_sentence
from socratic_cli.display.terminal import say, standard_error
from socratic_cli.options.configuration import changes_options, fresh_option
from socratic_cli.options.store import (
    broker_option,
    database_file,
    opened_broker,
    prepared_store,
    store_option,
)

SOURCE = "socratic-bench"
GOES_ON = "The same command continues from here, and requests no finished run twice."
STORED = (
    "The plan is stored as {0}: running services request its runs soon after the broker takes "
    "messages again. `socratic-bench cancel {0}` prevents that."
)


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@broker_option
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print the counts of requests as JSON.")
@click.option("--retry-failed", is_flag=True, help="Request failed runs once more.")
@fresh_option
@changes_options
def submit(
    config: Path,
    broker_url: str | None,
    store_url: str,
    as_json: bool,
    retry_failed: bool,
    fresh: bool,
    changes: Changes,
) -> None:
    """Have running services carry out the benchmark in CONFIG.

    Prints the experiment's id. The same command again requests only the missing runs. It reuses the
    answers that another experiment in the store got to the same questions within 30 days.
    """
    benchmark_config = read_config(config, RegisteredModels(), changes)
    for note in (*benchmark_config.notes, *_notes(benchmark_config, store_url)):
        say(f"Note: {note}")
    try:
        experiment, counts = asyncio.run(
            _submit(benchmark_config, broker_url, store_url, retry_failed=retry_failed, fresh=fresh)
        )
    except (BrokerError, StoreUnavailable, KeyboardInterrupt):
        say(GOES_ON)
        raise
    if as_json:
        click.echo(json.dumps(_as_json(experiment, counts)))
    else:
        click.echo(experiment.experiment_id)
    _report(experiment, counts)


def _notes(config: BenchmarkConfig, store_url: str) -> list[str]:
    """Return notes about files that remote services cannot read."""
    notes = []
    if database_file(store_url) is not None:
        notes.append(
            f"{store_url} is a file: this works only if all services run on this machine "
            "and use the same file"
        )
    if any(spec_of(model).reads_files for model in config.manifest.called_models):
        notes.append(
            "recordings stay on this machine: the runner reads them from its own folder, which "
            "SOCRATIC_RUNNER_FOLDER names"
        )
    notes += endpoints_to_list(config)
    return notes


async def _submit(
    config: BenchmarkConfig,
    broker_url: str | None,
    store_url: str,
    *,
    retry_failed: bool,
    fresh: bool,
) -> tuple[Experiment, PlanCounts]:
    clock = SystemClock()
    async with opened_broker(broker_url) as broker, prepared_store(store_url) as store:
        await broker.declare(WORK_QUEUES, BROADCASTS)
        experiment = config.experiment(clock.now())
        prospect = await look_into(
            store, experiment, fresh=fresh, adopt=True, retry_failed=retry_failed
        )
        say(prospect_sentence(prospect))
        experiment = await store.register(experiment)
        try:
            with _Requests(broker, prospect.outlook.new) as requests:
                counts = await resume(
                    experiment,
                    None,
                    store,
                    requests.publish,
                    clock=clock,
                    source=SOURCE,
                    retry_failed=retry_failed,
                )
        except BrokerError:
            say(STORED.format(experiment.experiment_id))
            raise
    return experiment, counts


class _Requests:
    """Publishes events, and counts them on standard error if that is a terminal."""

    def __init__(self, broker: Broker, expected: int) -> None:
        self._broker = broker
        console = standard_error()
        self._bar = Progress(
            TextColumn("runs requested"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._line = self._bar.add_task("", total=expected)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    async def publish(self, events: Sequence[Event]) -> None:
        """Return once the broker has confirmed all of them."""
        try:
            await self._broker.publish([to_message(event) for event in events])
        except MessageTooLarge as error:
            say(f"Note: {error}.")
        self._bar.advance(self._line, sum(isinstance(event, RunRequested) for event in events))


def _as_json(experiment: Experiment, counts: PlanCounts) -> dict[str, object]:
    return {
        "experiment_id": experiment.experiment_id,
        "manifest_id": experiment.manifest.manifest_id,
        "planned": counts.planned,
        "already_done": counts.already_done,
        "answered": counts.answered,
        "requested": counts.requested,
    }


def _report(experiment: Experiment, counts: PlanCounts) -> None:
    """Report the requests on standard error, and the next command."""
    experiment_id, deadline = experiment.experiment_id, experiment.deadline_at
    say(f"{counts.requested} of {counts.planned} runs requested.")
    source = click.get_current_context().get_parameter_source("store_url")
    store = " --store URL" if source is ParameterSource.COMMANDLINE else ""
    if experiment.completed_at is not None or not (counts.requested or counts.answered):
        # A complete experiment stays complete while failed runs are retried: nothing to watch.
        say(f"See the results: socratic-bench leaderboard --experiment {experiment_id}{store}")
        return
    if deadline <= SystemClock().now():
        say(
            f"Its deadline was {moment(deadline)}: raise `deadline_hours` in CONFIG to postpone it."
        )
    say(f"Follow it: socratic-bench watch {experiment_id}{store}")
