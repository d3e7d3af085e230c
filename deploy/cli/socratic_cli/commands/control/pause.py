"""`socratic-bench pause`: let no call of an experiment begin until it is resumed."""

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
    """Pause an experiment: no call of it begins until it is resumed.

    ID may be its start, an occasion or a name.

    Calls in flight finish, and what they bring is stored, scored and shown.
    """
    found, state = asyncio.run(change(experiment, store_url, ExperimentState.PAUSED))
    if state is not ExperimentState.PAUSED:
        refuse(found, state)
    say_stopped(found, state)
