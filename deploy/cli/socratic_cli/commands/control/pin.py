"""`socratic-bench pin`: pins an experiment for the default leaderboard."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_cli.display.terminal import say
from socratic_cli.options.store import prepared_store, store_option


@click.command()
@click.argument("experiment", metavar="ID")
@store_option
def pin(experiment: str, store_url: str) -> None:
    """Pin an experiment: the leaderboard shows it by default.

    ID may be the start of an id, an occasion or a name. The table shows pinned experiments alone;
    of several, those under the conditions of the latest pin.
    """
    found = asyncio.run(change_pin(experiment, store_url, is_pinned=True))
    say(
        f"{found.experiment_id} is pinned: `socratic-bench leaderboard` and the dashboard show it "
        f"by default. `socratic-bench unpin {found.experiment_id}` ends that."
    )


async def change_pin(experiment_id: str, store_url: str, *, is_pinned: bool) -> Experiment:
    """Pin or unpin the matching experiment; returns it as it was."""
    async with prepared_store(store_url, must_exist=True) as store:
        experiment = await find_experiment(store, experiment_id)
        await store.pin(experiment.experiment_id, SystemClock().now() if is_pinned else None)
        return experiment
