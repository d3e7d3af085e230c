"""The look of figures and texts on a terminal, the same in every table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console

if TYPE_CHECKING:
    from socratic_bench.ports.stores.experiments import Progress

PIPED_WIDTH = 10_000
"""The width of a file or a pipe: no table reaches it, so that none cuts a name."""

NAME_WIDTH = 60
"""The most columns of a name on a terminal."""

MOST_OF_NAME = 300
"""The most columns of a name in a file or a pipe."""


def standard_output() -> Console:
    """Return the console for results."""
    return Console(
        width=None if _is_terminal() else PIPED_WIDTH,
        highlight=False,
        soft_wrap=False,
        markup=False,
        emoji=False,
    )


def _is_terminal() -> bool:
    output: TextIO | None = sys.stdout  # None where the shell closed it
    return output is not None and output.isatty()


def standard_error() -> Console:
    """Return the console for progress and notes."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def say(sentence: str) -> None:
    """Print a note on standard error; above the leaderboard that grows there, if one does."""
    # A live display replaces sys.stderr, which click.echo would pass by.
    error: TextIO | None = sys.stderr  # None where the shell closed it
    if error is not None:
        error.write(f"{sentence}\n")


def counted(number: int, what: str) -> str:
    """A number of things, in words: `1 run`, `2 runs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def how_far(progress: Progress) -> str:
    """Return the progress of an experiment, in runs."""
    runs = counted(progress.planned, "run")
    done = runs if progress.done == progress.planned else f"{progress.done} of {runs}"
    return f"{done} done, {progress.failed or 'none'} failed"


def excerpt(text: str, width: int = 60) -> str:
    """Return the start of `text` on one line, without control characters: it is data."""
    folded = " ".join(text[: 4 * width].split())
    printable = "".join(c if c.isprintable() else "\ufffd" for c in folded)
    shortened = len(printable) > width or len(text) > 4 * width
    return f"{printable[: width - 1]}\u2026" if shortened else printable


def name_of(text: str, width: int | None = None) -> str:
    """Return a name of unknown origin, safe to print, in at most `width` columns.

    Without a width a terminal gets NAME_WIDTH, and a file or a pipe all of it.
    """
    if width is None:
        width = NAME_WIDTH if _is_terminal() else MOST_OF_NAME
    return shortened(excerpt(text, MOST_OF_NAME), width)


def shortened(text: str, width: int) -> str:
    """Return `text` in at most `width` columns: a long one loses its middle.

    The ends of models' ids differ: `openai-compa…/good`.
    """
    if cell_len(text) <= width:
        return text
    tail = text[text.rfind("/") :] if "/" in text else ""
    if not 0 < cell_len(tail) <= width * 2 // 3:
        tail = _last(text, (width - 1) // 2)
    return f"{set_cell_size(text, width - 1 - cell_len(tail)).rstrip()}\u2026{tail}"


def _last(text: str, width: int) -> str:
    """Return as much of the end of `text` as `width` columns hold."""
    end = text[-width:] if width > 0 else ""
    while cell_len(end) > width:
        end = end[1:]
    return end
