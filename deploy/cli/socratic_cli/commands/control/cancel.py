"""`socratic-bench cancel`: stops an experiment, and keeps its results."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.domain.experiment.state import ExperimentState
from socratic_cli.commands.control.state_change import change, refuse, say_stopped
from socratic_cli.options.store import store_option


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def cancel(experiment: str, store_url: str) -> None:
    """Cancel an experiment; its results stay.

    ID may be the start of an id, an occasion or a name. Calls in flight finish, and their responses
    are stored, scored and shown. `socratic-bench resume ID` continues the experiment.
    """
    found, state = asyncio.run(change(experiment, store_url, ExperimentState.CANCELLED))
    if state is not ExperimentState.CANCELLED:
        refuse(found, state)
    say_stopped(found, state)
