"""`socratic-bench unpin`: takes an experiment's pin out."""

from __future__ import annotations

import asyncio

import click

from socratic_cli.commands.control.pin import change_pin
from socratic_cli.display.terminal import say
from socratic_cli.options.store import store_option


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def unpin(experiment: str, store_url: str) -> None:
    """Unpin an experiment.

    ID may be the start of an id, an occasion or a name. Without any pin, the leaderboard shows the
    newest complete experiment that is no pilot.
    """
    found = asyncio.run(change_pin(experiment, store_url, is_pinned=False))
    if found.manifest.pinned_at is None:
        say(f"{found.experiment_id} is not pinned: nothing was changed.")
    else:
        say(f"{found.experiment_id} is no longer pinned.")
