"""Reads tables that people write: CSV, Parquet, and data sets of the library `datasets`.

A row knows its place, so that a mistake in it names its line and hides no other row.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import shown
from socratic_bench.planning.config_file.source import (
    NODES_LIMIT,
    SIZE_LIMIT,
    Mistakes,
    Node,
    Place,
    Unreadable,
    storable,
)
from socratic_bench.plugins import require_package

LONGEST_FIELD: Final = 8_000_000
"""The most characters of a field of a table: as many as a runner takes of a reply."""

_OLDEST_DATASETS: Final = 3
"""Older versions of `datasets` run programs that come with a data set."""


def separator_of(name: str, heading: str) -> str:
    """Return what parts the cells of a file of this name and heading: a comma, unless the ending
    `.tsv` or the heading tells another one.
    """
    if name.lower().endswith(".tsv"):
        return "\t"
    others = (each for each in ";\t" if each in heading and "," not in heading)
    return next(others, ",")


class CsvRow(NamedTuple):
    """One row of a CSV below its heading."""

    line: int
    """Its first line, from 1."""

    cells: Mapping[str, str]
    """By column; the last cells of a short row are empty."""

    extra: int = 0
    """How many cells it has beyond the heading."""

    problem: str | None = None
    """Why it is not CSV; None if it is."""


class CsvTable:
    """A CSV, read row by row."""

    def __init__(self, lines: Iterable[str], separator: str) -> None:
        """Read the heading. Raises csv.Error where it is not CSV."""
        csv.field_size_limit(LONGEST_FIELD)
        self._reader = csv.reader(lines, strict=True, delimiter=separator)
        self.columns = [each.strip() for each in next(filter(None, self._reader), ())]

    @property
    def line(self) -> int:
        """The last line that was read, from 1."""
        return self._reader.line_num

    def rows(self) -> Iterator[CsvRow]:
        """Yield the rows, without empty lines; a broken row hides no other."""
        while True:
            line = self.line + 1
            try:
                cells = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield CsvRow(line, {}, problem=_problem(error))
                continue
            if cells:
                extra = max(0, len(cells) - len(self.columns))
                named = zip_longest(self.columns, cells[: len(self.columns)], fillvalue="")
                yield CsvRow(line, {name: cell for name, cell in named if name}, extra)


def _problem(error: csv.Error) -> str:
    if "end of data" in str(error):
        return "not valid CSV: a quotation mark opens here, and none closes it"
    return f"not valid CSV: {error}"


class Table(NamedTuple):
    """A table, read as a whole."""

    columns: tuple[str, ...]
    rows: list[Node]
    """Mappings by column; a row may lack columns."""

    @classmethod
    def of(cls, rows: Iterable[Node]) -> Table:
        """Return the table of some rows."""
        found = list(rows)
        return cls(tuple(dict.fromkeys(name for row in found for name in row.fields or ())), found)


def csv_table(text: str, file: str, mistakes: Mistakes) -> Table:
    """Read a CSV. Raises Unreadable if its heading is none."""
    # Not `splitlines`, which also parts lines at marks that a cell may hold.
    lines = list(io.StringIO(text, newline=""))
    heading = next((each for each in lines if each.strip()), "")
    if not heading:
        raise Unreadable(Place(file), "is empty")
    try:
        table = CsvTable(lines, separator_of(file, heading))
    except csv.Error as error:
        raise Unreadable(Place(file, 1), f"not valid CSV: {error}") from None
    named = [each for each in table.columns if each]
    if twice := [each for each in dict.fromkeys(named) if named.count(each) > 1]:
        problem = f"the heading has {shown(twice[0])} more than once: rename one of them"
        raise Unreadable(Place(file, table.line), problem)
    return Table(tuple(named), list(_csv_nodes(table, file, mistakes)))


def _csv_nodes(table: CsvTable, file: str, mistakes: Mistakes) -> Iterator[Node]:
    for row in table.rows():
        place = Place(file, row.line)
        if row.problem is not None:
            mistakes.add(place, row.problem)
        elif row.extra:
            problem = (
                f"has {len(table.columns) + row.extra} cells, and the heading {len(table.columns)}:"
                " put a text that holds the separator into quotes"
            )
            mistakes.add(place, problem)
        elif any(row.cells.values()):  # spreadsheets leave rows of empty cells
            cells = ((name, storable(cell, place, mistakes)) for name, cell in row.cells.items())
            yield Node(place, {name: Node(place.child(name), cell) for name, cell in cells})


def parquet_table(path: Path, file: str, mistakes: Mistakes) -> Table:
    """Read a Parquet file. Raises MissingExtra without pyarrow, and InvalidInput."""
    require_package("pyarrow", needed_by=f"{file} is Parquet, which", extra=_PARQUET)
    if not path.is_file():
        raise InvalidInput("there is no such file")
    parquet = import_module("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as opened:
            batches = opened.iter_batches(batch_size=1000)
            rows = chain.from_iterable(batch.to_pylist() for batch in batches)
            return Table.of(_nodes(rows, file, mistakes))
    except OSError as error:  # those of pyarrow are subclasses
        raise InvalidInput(_first_line(error)) from None
    except ValueError as error:
        raise InvalidInput(f"is no Parquet file: {_first_line(error)}") from None


_PARQUET: Final = "socratic-ai-bench[parquet]"


def dataset_table(
    name: str, config: str | None, split: str | None, folder: Path, mistakes: Mistakes
) -> Table:
    """Read a data set of a hub, or a folder below `folder`, with the library `datasets`.

    Raises InvalidInput, with the library's reason where it cannot load the data set.
    """
    if find_spec("datasets") is None:
        raise InvalidInput("needs datasets, which is not installed; run: pip install datasets")
    library = import_module("datasets")
    if int(library.__version__.partition(".")[0]) < _OLDEST_DATASETS:
        raise InvalidInput(f"needs datasets {_OLDEST_DATASETS} or newer")
    library.disable_progress_bars()
    local = folder / name
    source = str(local) if local.is_dir() else name
    try:
        loaded = library.load_dataset(source, config, split=split)
    except Exception as error:  # noqa: BLE001 - the library, its plug-ins and the network
        said = f"{type(error).__name__}: {_first_line(error)}"
        raise InvalidInput(f"datasets cannot load it: {said}") from None
    if isinstance(loaded, dict):
        raise InvalidInput(f"add `split`, one of {', '.join(map(str, loaded))}")
    return Table.of(_nodes(loaded, name, mistakes))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:300]


def _nodes(rows: Iterable[Mapping[str, Any]], file: str, mistakes: Mistakes) -> Iterator[Node]:
    """Yield rows as nodes. Raises Unreadable beyond the limits of a document."""
    values = characters = 0
    for number, row in enumerate(rows, start=1):
        place = Place(file, None, f"row {number}")
        cells = {name: _plain(value) for name, value in row.items()}
        values += len(cells)
        characters += sum(len(str(each)) for each in cells.values())
        if values > NODES_LIMIT or characters > SIZE_LIMIT:
            problem = f"holds more than {NODES_LIMIT} values or {SIZE_LIMIT // 1_000_000} MB"
            raise Unreadable(place, problem)
        yield Node(
            place,
            {
                name: _storable(Node.of(cell, place.child(name)), mistakes)
                for name, cell in cells.items()
                if cell is not None
            },
        )


def _storable(node: Node, mistakes: Mistakes) -> Node:
    if isinstance(node.value, str):
        return Node(node.place, storable(node.value, node.place, mistakes))
    return node


def _plain(value: object) -> JsonValue:
    """Return a value of a table as JSON has it; pandas writes an empty cell as NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return str(value)
