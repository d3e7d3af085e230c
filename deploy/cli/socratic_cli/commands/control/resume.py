"""`socratic-bench resume`: resumes a paused or cancelled experiment."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.domain.experiment.state import ExperimentState
from socratic_cli.commands.control.state_change import change, refuse
from socratic_cli.display.terminal import say
from socratic_cli.options.store import store_option


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def resume(experiment: str, store_url: str) -> None:
    """Resume a paused or cancelled experiment.

    ID may be the start of an id, an occasion or a name. Services request the missing runs by
    themselves, within seconds. An experiment of `run` alone continues with the same `run`.
    """
    found, state = asyncio.run(change(experiment, store_url, ExperimentState.RESUMED))
    experiment_id = found.experiment_id
    if not state.calls_may_begin:
        refuse(found, state)
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
