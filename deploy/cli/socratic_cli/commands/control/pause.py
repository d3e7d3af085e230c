"""`socratic-bench pause`: holds the calls of an experiment until it is resumed."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.domain.experiment.state import ExperimentState
from socratic_cli.commands.control.state_change import change, refuse, say_stopped
from socratic_cli.options.store import store_option


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def pause(experiment: str, store_url: str) -> None:
    """Pause an experiment: its calls wait until `resume`.

    ID may be the start of an id, an occasion or a name. Calls in flight finish, and their responses
    are stored, scored and shown.
    """
    found, state = asyncio.run(change(experiment, store_url, ExperimentState.PAUSED))
    if state is not ExperimentState.PAUSED:
        refuse(found, state)
    say_stopped(found, state)
