"""`socratic-bench show`: shows one run in full."""

from __future__ import annotations

import asyncio

import click

from socratic_bench.reporting.transcripts.run_transcripts import Transcript, transcript_of
from socratic_cli.display.terminal import standard_output
from socratic_cli.display.transcript import transcript_text
from socratic_cli.options.profile import profile_option
from socratic_cli.options.store import readable_store, store_option


@click.command()
@click.argument("run")
@store_option
@profile_option
def show(run: str, store_url: str, profile: str | None) -> None:
    """Show one run in full, with the evidence for its score.

    RUN is its id, as `transcripts` shows it.
    """
    console = standard_output()
    transcript = asyncio.run(_load(store_url, run, profile))
    console.print(transcript_text(transcript, has_style=console.is_terminal))


async def _load(store_url: str, run: str, profile: str | None) -> Transcript:
    async with readable_store(store_url) as store:
        return await transcript_of(store, run, profile)
