"""The scenarios of a table: a file, or a data set of a hub.

A map names the column of a field, or gives a template of columns such as `{{question}}`; names
that are no mistake need no map. The other columns become the scenario's metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

from pydantic import JsonValue

from socratic_bench.domain.identifiers import content_name
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import close_match, quoted, shown, unknown_field
from socratic_bench.planning.config_file.documents import parse_json_lines, read_text
from socratic_bench.planning.config_file.source import Mistakes, Node, Place, Unreadable
from socratic_bench.planning.config_file.tables import (
    Table,
    csv_table,
    dataset_table,
    parquet_table,
)

SUFFIXES: Final = (".jsonl", ".csv", ".tsv", ".parquet")

_LISTS: Final = ("follow_ups", "pressures", "key")
_FIELDS: Final = tuple(name for name in Scenario.model_fields if name != "metadata")
_OF_FILE: Final = ("file", *_FIELDS)
_OF_DATASET: Final = ("dataset", "config", "split", *_FIELDS)
_GUESSES: Final[Mapping[str, Collection[str]]] = {
    "id": ("scenario_id", "question_id"),
    "prompt": ("question", "student_message", "input", "instruction", "problem"),
    "dimension": ("subject", "category", "topic"),
}
"""The names of columns, beside a field's own, that make the field without a map."""

ONE_DIMENSION: Final = "all"
"""The dimension of all scenarios of a table without a column for it."""

_COLUMN: Final = re.compile(r"\{\{([^{}]*)\}\}")
_MOST_WORDS: Final = 5
_LONGEST_WORDS: Final = 40


def is_table(node: Node) -> bool:
    """Whether an entry of `scenarios` names a table."""
    return node.fields is not None and not {"file", "dataset"}.isdisjoint(node.fields)


def table_schemas() -> Iterator[dict[str, Any]]:
    """Yield the schemas of the mappings that name a table, as JSON has them."""
    text = {"type": "string"}
    for kind in (_OF_FILE, _OF_DATASET):
        fields = dict.fromkeys(kind, text) | {
            name: {"anyOf": [text, {"type": "array", "items": text}]} for name in _LISTS
        }
        yield {
            "type": "object",
            "properties": fields,
            "required": [kind[0]],
            "additionalProperties": False,
        }


@dataclass(frozen=True, slots=True)
class ScenarioTables:
    """Reads the tables of one configuration as scenarios."""

    base_folder: Path | None
    """The folder that paths start from; None: no files and no data sets."""

    mistakes: Mistakes

    def scenarios(self, node: Node) -> list[Node] | None:
        """Return the scenarios of a table, as mappings; None after a mistake in the table.

        `node` is the path of a file, or a mapping with `file` or `dataset` and a map.
        """
        written = node.fields if node.fields is not None else {"file": node}
        known = _OF_DATASET if "dataset" in written else _OF_FILE
        for name, field in written.items():
            if name not in known:
                self.mistakes.add(field.place, unknown_field(name, known))
        source = written.get("dataset", written.get("file"))
        try:
            table = self._read(source or node, written)
            fields = {name: each for name, each in written.items() if name in _FIELDS}
            columns = _Columns.of(fields, table, self.mistakes, is_short=node.fields is None)
        except Unreadable as error:
            self.mistakes.add(error.place, error.problem)
        except InvalidInput as error:
            self.mistakes.add((source or node).place, str(error))
        else:
            if columns is not None:
                return list(_named(map(columns.scenario, table.rows)))
        return None

    def _read(self, source: Node, written: Mapping[str, Node]) -> Table:
        if self.base_folder is None:
            raise InvalidInput(
                "a file cannot be read from here: write the scenarios out in its place"
            )
        name = source.value
        if not isinstance(name, str):
            raise InvalidInput(f"must be a name, not {shown(source.plain())}")
        if "dataset" in written:
            config, split = (self._text(written.get(each)) for each in ("config", "split"))
            return dataset_table(name, config, split, self.base_folder, self.mistakes)
        try:
            return self._file(name, self.base_folder / name)
        except Unreadable:
            raise
        except InvalidInput as error:
            folder = self.base_folder.absolute()
            raise InvalidInput(f"{shown(name)} in {folder}: {error}") from None

    def _file(self, name: str, path: Path) -> Table:
        suffix = PurePath(name).suffix.lower()
        if suffix not in SUFFIXES:
            raise InvalidInput(f"is no table: its name must end in {', '.join(SUFFIXES)}")
        if suffix == ".parquet":
            return parquet_table(path, name, self.mistakes)
        text = read_text(path)
        if suffix == ".jsonl":
            return Table.of(parse_json_lines(text, name, self.mistakes))
        return csv_table(text, name, self.mistakes)

    def _text(self, node: Node | None) -> str | None:
        if node is None or isinstance(node.value, str):
            return None if node is None else str(node.value)
        raise InvalidInput(f"its options must be texts, not {shown(node.plain())}")


@dataclass(frozen=True, slots=True)
class _Columns:
    """Makes scenarios of the rows of one table."""

    templates: Mapping[str, tuple[str, ...]]
    """By field: a template of columns, or several for a list."""

    has_dimensions: bool
    used: Collection[str]
    """The columns that the templates name: they are no metadata."""

    takes_packs: bool
    """Whether a row may be the id of a scenario of the default pack."""

    @classmethod
    def of(
        cls, fields: Mapping[str, Node], table: Table, mistakes: Mistakes, *, is_short: bool
    ) -> _Columns | None:
        """Check the map against the columns of the table; None after a mistake in it.

        Raises InvalidInput where no column is the prompt's.
        """
        templates: dict[str, tuple[str, ...]] = {}
        for name, node in fields.items():
            parts = node.value if name in _LISTS and isinstance(node.value, list) else [node]
            found = [_template(each, table.columns, mistakes) for each in parts]
            templates[name] = tuple(each for each in found if each is not None)
            if len(templates[name]) < len(found):
                return None
        for name in _FIELDS:
            if name not in templates and (column := _guessed(name, table.columns)) is not None:
                templates[name] = (f"{{{{{column}}}}}",)
        if table.rows and "prompt" not in templates and "id" not in templates:
            there_are = ", ".join(map(quoted, table.columns))
            raise InvalidInput(
                f"add the column of the question, such as `prompt: {_like(table.columns)}`; the "
                f"columns are {there_are or 'none'}"
            )
        every = (template for each in templates.values() for template in each)
        used = {column.strip() for template in every for column in _COLUMN.findall(template)}
        if is_short:
            _note_misspelt(table, used, mistakes)
        return cls(templates, "dimension" in templates, used, is_short)

    def scenario(self, row: Node) -> Node:
        """Return the scenario in a row: a mapping, or what the row has in place of one."""
        cells = row.fields
        if cells is None:
            return row
        fields = {}
        for name, templates in self.templates.items():
            make = self._list if name in _LISTS else self._text
            if (node := make(row, name, templates)) is not None:
                fields[name] = node
        if "prompt" not in fields and not (self.takes_packs and "id" in fields):
            fields["prompt"] = Node(row.place.child("prompt"), "")
        if not self.has_dimensions and "prompt" in fields:
            fields["dimension"] = Node(row.place.child("dimension"), ONE_DIMENSION)
        others = {
            name: Node(each.place, _metadata(each.plain()))
            for name, each in cells.items()
            if name not in self.used and name != "metadata" and each.value not in (None, "")
        }
        if (written := cells.get("metadata")) is not None and "metadata" not in self.used:
            fields["metadata"] = written
        if others:
            own = fields["metadata"].fields if "metadata" in fields else None
            place = row.place.child("metadata")
            fields["metadata"] = Node(place, {**(own or {}), **others})
        return row.with_fields(fields)

    def _text(self, row: Node, name: str, templates: tuple[str, ...]) -> Node | None:
        for template in templates:
            column = _COLUMN.fullmatch(template)
            if column is None:
                return Node(row.place.child(name), _filled(template, row))
            cell = row.entry(column[1].strip())
            if cell is None or cell.value is None:
                return None
            if name in {"id", "dimension"} and not isinstance(cell.value, list | dict):
                text = _metadata(cell.value).strip()
                return Node(cell.place, text) if text else None
            return cell
        return None

    def _list(self, row: Node, name: str, templates: tuple[str, ...]) -> Node | None:
        parts = []
        for template in templates:
            found = self._text(row, name, (template,))
            if found is not None:
                parts += _parts(found)
        return Node(row.place.child(name), parts) if parts else None


def _template(node: Node, columns: Collection[str], mistakes: Mistakes) -> str | None:
    """Return a template of a map: what is no template is the name of a column."""
    text = node.value
    if not isinstance(text, str):
        mistakes.add(
            node.place, f"must be a column, or a template in quotes, not {shown(node.plain())}"
        )
        return None
    named = [each.strip() for each in _COLUMN.findall(text)] or [text]
    for column in named:
        if column not in columns:
            meant = close_match(column, columns)
            there_are = f"the columns are {', '.join(map(quoted, columns))}"
            remedy = f"did you mean {quoted(meant)}?" if meant else there_are
            mistakes.add(node.place, f"the table has no column {quoted(column)}; {remedy}")
            return None
    return text if _COLUMN.search(text) else f"{{{{{text}}}}}"


def _guessed(field: str, columns: Collection[str]) -> str | None:
    """Return the column of a field without a map. Raises InvalidInput where several fit."""
    names = {column.casefold().replace(" ", "_"): column for column in columns}
    if field in names:
        return names[field]
    found = [names[each] for each in _GUESSES.get(field, ()) if each in names]
    if len(found) > 1:
        first, second, *_ = found
        raise InvalidInput(
            f"{quoted(first)} and {quoted(second)} may both be the {field}: say which, such as "
            f"`{field}: {first}`"
        )
    return found[0] if found else None


def _like(columns: Collection[str]) -> str:
    return next(iter(columns), "question")


def _note_misspelt(table: Table, used: Collection[str], mistakes: Mistakes) -> None:
    """Note a column that resembles a field which its first row lacks."""
    for column in table.columns:
        meant = None if column in used else close_match(column, _FIELDS)
        row = next(each for each in table.rows if column in (each.fields or {})) if meant else None
        if row is not None and row.entry(meant or "") is None:
            problem = f"unknown column; did you mean `{meant}`? `{{file: …}}` keeps it as metadata"
            mistakes.add(row.place_of((column,)), problem)


def _filled(template: str, row: Node) -> str:
    def cell(match: re.Match[str]) -> str:
        node = row.entry(match[1].strip())
        return "" if node is None or node.value is None else _metadata(node.plain())

    return _COLUMN.sub(cell, template).strip()


def _metadata(value: JsonValue) -> str:
    """Return a value as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parts(node: Node) -> list[Node]:
    """Return the entries of a cell: of a list, of a list as JSON in a text, or the text alone."""
    if isinstance(node.value, list):
        return node.value
    if isinstance(node.value, str) and node.value.startswith("["):
        try:
            found = json.loads(node.value)
        except ValueError:
            found = None
        if isinstance(found, list):
            return [Node.of(each, node.place) for each in found]
    return [] if node.value == "" else [node]


def _named(scenarios: Iterator[Node]) -> Iterator[Node]:
    """Give an id to each scenario without one: the first words of its prompt, and a hash of all
    that the student says, so that it does not depend on its row.
    """
    given: dict[str, int] = {}
    for each in scenarios:
        prompt = each.entry("prompt")
        if each.fields is None or "id" in each.fields or prompt is None:
            yield each
            continue
        later = each.entry("follow_ups")
        said: list[JsonValue] = [prompt.plain(), None if later is None else later.plain()]
        words = re.findall(r"\w+", str(prompt.value).casefold())[:_MOST_WORDS]
        slug = "-".join(words)[:_LONGEST_WORDS].strip("-_") or "scenario"
        name = f"{slug}-{content_name('q', said, 8).removeprefix('q-')}"
        given[name] = given.get(name, 0) + 1
        if given[name] > 1:
            name += f"-{given[name]}"
        yield each.with_fields(
            {"id": Node(Place(each.place.file, each.place.line), name), **each.fields}
        )
