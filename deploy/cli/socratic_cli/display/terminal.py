"""How figures and texts look on a terminal, the same in every table."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from rich.console import Console

if TYPE_CHECKING:
    from socratic_bench.ports.stores.experiments import Progress

PIPED_WIDTH = 160
"""Columns of a table that goes into a file or a pipe."""

MISSING = "\u2013"


def standard_output() -> Console:
    """The console for what was asked for."""
    return Console(
        width=None if sys.stdout.isatty() else PIPED_WIDTH,
        highlight=False,
        soft_wrap=False,
        markup=False,
        emoji=False,
    )


def standard_error() -> Console:
    """The console for progress, beside what was asked for."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def say(sentence: str) -> None:
    """Tell a person something beside what was asked for: on standard error, unwrapped."""
    click.echo(sentence, err=True)


def counted(number: int, what: str) -> str:
    """A number of things, in words: `1 run`, `2 runs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def how_far(progress: Progress) -> str:
    """How far an experiment is, in runs."""
    runs = counted(progress.planned, "run")
    done = runs if progress.done == progress.planned else f"{progress.done} of {runs}"
    return f"{done} done, {progress.failed or 'none'} failed"


def figure(value: object) -> str:
    """A score to hundredths; a dash for whatever is none."""
    return f"{value:.2f}" if isinstance(value, int | float) else MISSING


def share(value: float | None) -> str:
    """A share as a whole percentage, never rounded up to 100 %; a dash where there is none."""
    if value is None:
        return MISSING
    return "100 %" if value >= 1 else f"{min(round(100 * value), 99)} %"


def moment(time: datetime | None) -> str:
    """A time to the minute, in UTC; a dash where there is none."""
    return MISSING if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def excerpt(text: str, width: int = 60) -> str:
    """The start of `text` on one line, without control characters: a model's text is data."""
    folded = " ".join(text[: 4 * width].split())
    printable = "".join(c if c.isprintable() else "\ufffd" for c in folded)
    shortened = len(printable) > width or len(text) > 4 * width
    return f"{printable[: width - 1]}\u2026" if shortened else printable
