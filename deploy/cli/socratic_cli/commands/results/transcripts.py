"""`socratic-bench transcripts`: shows what was said in the runs of an experiment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

import click

from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.transcripts.run_transcripts import Transcript, worst_first
from socratic_bench.reporting.transcripts.run_transcripts import transcripts as transcripts_of
from socratic_cli.display.terminal import say, standard_output
from socratic_cli.display.transcript import transcript_text
from socratic_cli.options.profile import profile_option
from socratic_cli.options.store import readable_store, store_option

MOST_CHARACTERS: Final = 4_000
"""The most characters of a text; `show` has all of them."""


@click.command()
@click.argument("experiment")
@store_option
@profile_option
@click.option("--model", metavar="ID", help="Only this model.")
@click.option("--scenario", metavar="ID", help="Only this scenario.")
@click.option(
    "--worst", type=click.IntRange(min=1), metavar="N", help="The N runs with the lowest scores."
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="The most runs."
)
def transcripts(
    experiment: str,
    store_url: str,
    profile: str | None,
    model: str | None,
    scenario: str | None,
    worst: int | None,
    limit: int,
) -> None:
    """Show what was said in the runs of an experiment.

    The evidence for each score is marked in place. EXPERIMENT is an ID, its start, an occasion or
    a name.
    """
    asyncio.run(_show(store_url, experiment, profile, model, scenario, worst, limit))


async def _show(
    store_url: str,
    wanted: str,
    profile: str | None,
    model: str | None,
    scenario: str | None,
    worst: int | None,
    limit: int,
) -> None:
    console = standard_output()
    shown = 0
    async with readable_store(store_url) as store:
        experiment = await find_experiment(store, wanted)
        found = transcripts_of(store, experiment, model=model, scenario=scenario, profile=profile)
        if worst is not None:
            found, limit = _each(await worst_first(found, worst)), worst
        async for transcript in found:
            if shown == limit:
                say(f"There are more runs: --limit {2 * limit} shows more of them.")
                break
            console.print(
                transcript_text(transcript, has_style=console.is_terminal, most=MOST_CHARACTERS)
            )
            shown += 1
    if not shown:
        say("There is no such transcript yet.")


async def _each(found: Iterable[Transcript]) -> AsyncIterator[Transcript]:
    for transcript in found:
        yield transcript
