"""How figures and texts look on a terminal, the same in every table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console

if TYPE_CHECKING:
    from socratic_bench.ports.stores.experiments import Progress

PIPED_WIDTH = 160
"""Columns of a table that goes into a file or a pipe."""


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


def excerpt(text: str, width: int = 60) -> str:
    """The start of `text` on one line, without control characters: a model's text is data."""
    folded = " ".join(text[: 4 * width].split())
    printable = "".join(c if c.isprintable() else "\ufffd" for c in folded)
    shortened = len(printable) > width or len(text) > 4 * width
    return f"{printable[: width - 1]}\u2026" if shortened else printable


def name_of(text: str, width: int = 60) -> str:
    """A name that anybody may have written, as it is safe to print, in at most `width` columns."""
    return shortened(excerpt(text, 300), width)


def shortened(text: str, width: int) -> str:
    """`text` in at most `width` columns: what is too long loses its middle.

    The end of a model's id is what tells it from others: `openai-compa…/good`.
    """
    if cell_len(text) <= width:
        return text
    tail = text[text.rfind("/") :] if "/" in text else ""
    if not 0 < cell_len(tail) <= width * 2 // 3:
        tail = _last(text, (width - 1) // 2)
    return f"{set_cell_size(text, width - 1 - cell_len(tail)).rstrip()}\u2026{tail}"


def _last(text: str, width: int) -> str:
    """As much of the end of `text` as `width` columns hold."""
    end = text[-width:] if width > 0 else ""
    while cell_len(end) > width:
        end = end[1:]
    return end
