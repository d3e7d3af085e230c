"""The scenarios of a configuration: packs, parts of the default pack, its own, or a file's.

Packs are named sets of scenarios in YAML files of the library or of distributions. A distribution
offers a pack under the entry point group `socratic_bench.packs`: the pack's name, and the package
with the file NAME.yaml. No distribution can replace a built-in pack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePath
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from socratic_bench.domain.identifiers import content_name
from socratic_bench.domain.scenario import Name, Scenario
from socratic_bench.errors import BrokenPlugin, InvalidConfig, InvalidInput, Mistake
from socratic_bench.invalid_values import close_match, mistakes_in, shown
from socratic_bench.planning.config_file.documents import parse_document, read_text
from socratic_bench.planning.config_file.scenario_tables import (
    SUFFIXES,
    ScenarioTables,
    is_table,
)
from socratic_bench.planning.config_file.source import (
    Mistakes,
    Node,
    TooManyMistakes,
    Unreadable,
)
from socratic_bench.planning.config_file.validation import unknown_field, validate
from socratic_bench.plugins import Plugin, found

DEFAULT_PACK = "socratic-15"

GROUP: Final = "socratic_bench.packs"

_FOLDER = "socratic_bench.planning.packs"
_SafeLoader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class ScenarioPack(BaseModel):
    """The content of a pack's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pack: Name
    version: Annotated[int, Field(ge=1)]
    scenarios: Annotated[tuple[Scenario, ...], Field(min_length=1)]

    @property
    def content_hash(self) -> str:
        """The content name of the scenarios. Version, layout and comments do not count."""
        return content_name("pack", [each.model_dump(mode="json") for each in self.scenarios], 32)


def known_packs() -> tuple[str, ...]:
    """Return the names of all packs, sorted, without loading installed ones."""
    return tuple(sorted({*_built_in(), *found(GROUP)}))


@cache
def load_pack(name: str = DEFAULT_PACK) -> tuple[Scenario, ...]:
    """Return the scenarios of the pack called `name`, in the order of its file.

    Raises InvalidConfig for an unknown pack, with the names of the known ones, and BrokenPlugin,
    with the distribution's name, for a pack with a missing or wrong file.
    """
    if name in _built_in():
        return _read(files(_FOLDER), name).scenarios
    plugin = found(GROUP).get(name)
    if plugin is None:
        problem = f"unknown scenario pack {name!r}; the packs are {', '.join(known_packs())}"
        raise InvalidConfig([Mistake("scenarios", problem)])
    return _installed(plugin)


def read_pack(path: Path) -> ScenarioPack:
    """Read the pack in an author's file.

    Raises InvalidConfig with every mistake in it, or with the reason why it cannot be read.
    """
    mistakes = Mistakes()
    try:
        document = parse_document(read_text(path), str(path), mistakes)
        pack = validate(ScenarioPack, document, mistakes)
    except Unreadable as error:
        mistakes.add(error.place, error.problem)
        raise mistakes.as_error() from None
    except TooManyMistakes:
        raise mistakes.as_error() from None
    except InvalidInput as error:
        raise InvalidConfig([Mistake(str(path), str(error))]) from None
    if pack is None or mistakes:
        raise mistakes.as_error()
    return pack


def is_built_in(name: str) -> bool:
    """Whether the pack called `name` comes with the library."""
    return name in _built_in()


@cache
def _built_in() -> frozenset[str]:
    names = (entry.name for entry in files(_FOLDER).iterdir())
    return frozenset(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def _installed(plugin: Plugin) -> tuple[Scenario, ...]:
    package = plugin.load()
    try:
        pack = _read(files(package), plugin.name)
    except (OSError, TypeError, ValueError, yaml.YAMLError) as error:
        problem = f"cannot read {plugin.name}.yaml of its package: {_problem(error)}"
        raise plugin.broken(problem) from error
    ids = {scenario.id for scenario in pack.scenarios}
    if pack.pack != plugin.name or len(ids) < len(pack.scenarios):
        raise plugin.broken(f"needs `pack: {plugin.name}`, and a unique id for each scenario")
    return pack.scenarios


def _problem(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return f"{type(error).__name__}: {error}"
    return mistakes_in(error, ScenarioPack, shows_values=True)


def _read(folder: Traversable, name: str) -> ScenarioPack:
    text = folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    # _SafeLoader is one of PyYAML's two safe loaders.
    return ScenarioPack.model_validate(yaml.load(text, _SafeLoader))  # noqa: S506


_FILE_SUFFIXES = (".yaml", ".yml", ".json", *SUFFIXES)
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
_FILE_FIELDS = ("scenarios", "pack", "version")


@dataclass(frozen=True, slots=True)
class ScenarioSelection:
    """Reads the `scenarios` of one configuration."""

    base_folder: Path | None
    """The folder that paths of scenario files start from; None: no files."""

    mistakes: Mistakes

    def written_out(self, root: Node) -> Node | None:
        """Return the name of a pack, or the list of scenarios of the configuration or of its file.

        Returns None after a mistake.
        """
        node = root.entry("scenarios")
        if node is None:
            return Node(root.place, DEFAULT_PACK)
        if isinstance(node.value, list):
            expanded = [self._expanded(each) for each in node.value]
            return Node(node.place, [each for several in expanded for each in several])
        if isinstance(node.value, str):
            return self._named(node, node.value)
        if is_table(node):
            return self._table(node)
        problem = (
            "must be the name of a pack, a list of scenarios, the path of a scenario file, or a "
            f"mapping with `file` or `dataset`, not {shown(node.plain())}"
        )
        self.mistakes.add(node.place, problem)
        return None

    def _expanded(self, entry: Node) -> list[Node]:
        """Return an entry of a list, or the scenarios of the table that it names."""
        if not is_table(entry):
            return [entry]
        table = self._table(entry)
        return table.value if table is not None and isinstance(table.value, list) else []

    def _table(self, node: Node) -> Node | None:
        scenarios = ScenarioTables(self.base_folder, self.mistakes).scenarios(node)
        return None if scenarios is None else Node(node.place, scenarios)

    def read(self, node: Node) -> tuple[Scenario, ...]:
        """Return the scenarios of a pack or a list; note mistakes and leave out wrong scenarios."""
        if isinstance(node.value, list):
            return self._listed(node, node.value)
        return self._whole_pack(node, str(node.value))

    def _whole_pack(self, node: Node, name: str) -> tuple[Scenario, ...]:
        try:
            return load_pack(name)
        except BrokenPlugin as error:
            self.mistakes.add(node.place, str(error))
            return ()

    def _named(self, node: Node, name: str) -> Node | None:
        if is_built_in(name):
            return node
        suffix = PurePath(name).suffix.lower()
        if suffix in SUFFIXES:
            return self._table(node)
        if suffix in _FILE_SUFFIXES:
            return self._from_file(node, name)
        if suffix in _WORKBOOKS:
            self.mistakes.add(node.place, "is a workbook: save the sheet with the questions as CSV")
            return None
        if name in known_packs():
            return node
        problem = (
            f"{shown(name)} is neither a scenario pack (there are {', '.join(known_packs())}) "
            f"nor the path of a file that ends in {', '.join(_FILE_SUFFIXES)}"
        )
        self.mistakes.add(node.place, problem)
        return None

    def _from_file(self, node: Node, name: str) -> Node | None:
        if self.base_folder is None:
            problem = "a file cannot be read from here: write the scenarios out in its place"
            self.mistakes.add(node.place, problem)
            return None
        try:
            text = read_text(self.base_folder / name)
        except InvalidInput as error:
            folder = self.base_folder.absolute()
            self.mistakes.add(node.place, f"{shown(name)} in {folder}: {error}")
            return None
        try:
            document = parse_document(text, name, self.mistakes)
        except Unreadable as error:
            self.mistakes.add(error.place, error.problem)
            return None
        return self._from_document(document)

    def _from_document(self, document: Node) -> Node | None:
        for name, field in (document.fields or {}).items():
            if name not in _FILE_FIELDS:
                self.mistakes.add(field.place, unknown_field(name, _FILE_FIELDS))
        entries = document.entry("scenarios") if document.fields else document
        if entries and isinstance(entries.value, list):
            return entries
        place = document.place_of(("scenarios",)) if document.fields else document.place
        self.mistakes.add(place, "must be a list of scenarios")
        return None

    def _listed(self, node: Node, entries: Sequence[Node]) -> tuple[Scenario, ...]:
        if not entries:
            self.mistakes.add(node.place, "must name at least one scenario")
        scenarios: dict[str, Scenario] = {}
        for entry, scenario in self._each(entries):
            if scenario.id in scenarios:
                problem = f"scenario {shown(scenario.id)} is listed more than once"
                self.mistakes.add(entry.place_of(("id",) if entry.fields else ()), problem)
            scenarios[scenario.id] = scenario
        return tuple(scenarios.values())

    def _each(self, entries: Sequence[Node]) -> Iterator[tuple[Node, Scenario]]:
        for entry in entries:
            scenario: Scenario | None = None
            if isinstance(entry.value, str):
                if entry.value not in pack_by_id() and entry.value in known_packs():
                    yield from ((entry, each) for each in self._whole_pack(entry, entry.value))
                    continue
                scenario = self._of_the_pack(entry, entry.value)
            elif entry.fields is not None:
                scenario = self._written(entry)
            else:
                problem = (
                    f"must be a pack, the id of a scenario of {DEFAULT_PACK}, or a mapping with "
                    f"`id`, `dimension` and `prompt`, not {shown(entry.plain())}"
                )
                self.mistakes.add(entry.place, problem)
            if scenario is not None:
                yield entry, scenario

    def _of_the_pack(self, entry: Node, name: str) -> Scenario | None:
        scenario = pack_by_id().get(name)
        if scenario is None:
            meant = close_match(name, (*pack_by_id(), *known_packs()))
            remedy = f"; did you mean {shown(meant)}?" if meant else ""
            problem = f"{shown(name)} is neither a pack nor a scenario of {DEFAULT_PACK}{remedy}"
            self.mistakes.add(entry.place, problem)
        return scenario

    def _written(self, entry: Node) -> Scenario | None:
        fields = entry.fields or {}
        name = fields["id"].value if "id" in fields else None
        if "prompt" in fields or not isinstance(name, str):
            return validate(Scenario, entry, self.mistakes)
        if known := pack_by_id().get(name):
            written = Node.of(known.model_dump(mode="json"), entry.place).fields or {}
            return validate(Scenario, entry.with_fields({**written, **fields}), self.mistakes)
        problem = f"is missing, and {_not_in_the_pack(name)}"
        self.mistakes.add(entry.place_of(("prompt",)), problem)
        validate(Scenario, entry, self.mistakes, ignore_missing=True)
        return None


def pack_by_id() -> dict[str, Scenario]:
    """Return the scenarios of the default pack by their ids."""
    return {scenario.id: scenario for scenario in load_pack()}


def _not_in_the_pack(name: str) -> str:
    meant = close_match(name, tuple(pack_by_id()))
    if meant is None:
        return f"its id is not in {DEFAULT_PACK}"  # equal words for many rows
    return f"{shown(name)} is not in {DEFAULT_PACK}; did you mean {shown(meant)}?"
