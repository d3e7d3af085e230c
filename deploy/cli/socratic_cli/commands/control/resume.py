"""`socratic-bench resume`: let an experiment go on that was paused or cancelled."""

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
    """Let an experiment go on that was paused or cancelled.

    ID may be its start, an occasion or a name.

    Services request by themselves, within seconds, what is not done. An
    experiment that only `run` began goes on when `run` is typed again.
    """
    found, state = asyncio.run(change(experiment, store_url, ExperimentState.RESUMED))
    experiment_id = found.experiment_id
    if not state.calls_may_begin:
        refuse(found, state)
    elif found.completed_at is not None:
        say(f"{experiment_id} is complete: nothing is left to do.")
    elif not found.submitted:
        say(f"{experiment_id} may go on: `socratic-bench run CONFIG` takes it up.")
    elif state is ExperimentState.RESUMED:
        say(
            f"{experiment_id} goes on: services request within seconds what is not done. See how "
            f"far it is: socratic-bench watch {experiment_id}"
        )
    else:
        say(f"{experiment_id} is open: nothing was to be changed.")
