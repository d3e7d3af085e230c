"""Tables that fit the terminal: names are shortened, columns left out, figures never cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from socratic_cli.display.terminal import shortened

GAP: Final = 2
"""The gap between two columns of a table, in columns of the terminal."""

NAME_WIDTH: Final = 14
"""The width to which names shrink before a column is left out."""

FOLDED_WIDTH: Final = 18
"""The width to which sentences fold before a column is left out."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table."""

    heading: str
    align: Literal["left", "right", "center"] = "right"
    drop: int | None = None
    """Columns with the lowest number are left out first; None: never."""

    is_name: bool = False
    """True if its texts may be shortened in the middle."""

    folds: bool = False
    """True if its texts may continue on the next line."""

    @property
    def least(self) -> int | None:
        """The least width of its texts; None: they keep theirs."""
        if self.folds:
            return FOLDED_WIDTH
        return NAME_WIDTH if self.is_name else None


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table that is no wider than the terminal."""

    table: Table
    left_out: tuple[str, ...]
    """The headings of the left-out columns."""

    def note(self, remedy: str) -> list[str]:
        """A line that names the left-out columns and the remedy; None if there are none."""
        if not self.left_out:
            return []
        return [f"Too narrow for {', '.join(self.left_out)}: {remedy}."]


@dataclass(frozen=True, slots=True)
class FittingTable:
    """Rows that adapt to the width of the terminal when they are printed."""

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[str | Text]]
    remedy: str
    """The way to see the left-out columns."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table, and a line that names the left-out columns."""
        fitted = fitted_table(self.columns, self.rows, width=options.max_width)
        yield fitted.table
        for line in fitted.note(self.remedy):
            yield Text(line, style="dim")


def fitted_table(
    columns: Sequence[TableColumn], rows: Iterable[Sequence[str | Text]], *, width: int
) -> FittedTable:
    """Put the rows into a table of at most `width` columns of the terminal."""
    texts = [[each if isinstance(each, Text) else Text(each) for each in row] for row in rows]
    wanted = [
        max([cell_len(column.heading), *(_width(row[place]) for row in texts)])
        for place, column in enumerate(columns)
    ]
    kept = _kept(columns, wanted, width)
    widths = _widths(columns, wanted, kept, width)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for place in kept:
        column = columns[place]
        heading = shortened(column.heading, widths[place])
        table.add_column(
            heading,
            justify=column.align,
            no_wrap=not column.folds,
            overflow="fold",
            min_width=widths[place],
            max_width=widths[place],
        )
    for row in texts:
        table.add_row(*(_cell(columns[place], row[place], widths[place]) for place in kept))
    left_out = (each.heading for place, each in enumerate(columns) if place not in kept)
    return FittedTable(table, tuple(left_out))


def _kept(columns: Sequence[TableColumn], wanted: Sequence[int], width: int) -> list[int]:
    """Return the positions of the columns that fit with the shortest names."""
    least = [
        wide if column.least is None else min(column.least, wide)
        for column, wide in zip(columns, wanted, strict=True)
    ]
    kept = list(range(len(columns)))
    while sum(least[place] for place in kept) + GAP * (len(kept) - 1) > width:
        numbers = [drop for place in kept if (drop := columns[place].drop) is not None]
        if not numbers:
            break
        kept = [place for place in kept if columns[place].drop != min(numbers)]
    return kept


def _widths(
    columns: Sequence[TableColumn], wanted: Sequence[int], kept: Sequence[int], width: int
) -> dict[int, int]:
    """Return the width of each column: the widest name or sentence shrinks first."""
    widths = {place: wanted[place] for place in kept}
    names = [place for place in kept if columns[place].least is not None]
    over = sum(widths.values()) + GAP * (len(kept) - 1) - width
    while over > 0 and names:
        widest = max(names, key=widths.__getitem__)
        if widths[widest] <= 1:
            break
        widths[widest] -= 1
        over -= 1
    return widths


def _width(text: Text) -> int:
    """The width of the widest line of a cell."""
    return max(map(cell_len, text.plain.split("\n")))


def _cell(column: TableColumn, text: Text, width: int) -> Text:
    return (
        text
        if column.folds or _width(text) <= width
        else Text(shortened(text.plain, width), text.style)
    )
