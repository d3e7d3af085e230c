"""The scenarios of a configuration: a pack, a part of it, its own, or a file's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import BrokenPlugin, InvalidInput
from socratic_bench.invalid_values import close_match, shown
from socratic_bench.planning.config_file.documents import (
    parse_document,
    parse_json_lines,
    read_text,
)
from socratic_bench.planning.config_file.predecessor import Predecessor
from socratic_bench.planning.config_file.source import Mistakes, Node, Unreadable
from socratic_bench.planning.config_file.validation import unknown_field, validate
from socratic_bench.planning.scenario_packs import (
    DEFAULT_PACK,
    is_built_in,
    known_packs,
    load_pack,
)

_FILE_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")
_FILE_FIELDS = ("scenarios", "pack", "version")


@dataclass(frozen=True, slots=True)
class ScenarioSelection:
    """Reads the `scenarios` of one configuration."""

    base_folder: Path | None
    """The folder that paths of scenario files start from; None: no files."""

    mistakes: Mistakes
    predecessor: Predecessor | None
    """The translation of the predecessor's entries, for a configuration of its shape."""

    def read(self, node: Node | None) -> tuple[Scenario, ...]:
        """Return the scenarios of `node`; note mistakes and leave out wrong scenarios."""
        if node is None or node.value == DEFAULT_PACK:
            return load_pack()
        if isinstance(node.value, str):
            return self._named(node, node.value)
        if isinstance(node.value, list):
            return self._listed(node, node.value)
        problem = (
            "must be the name of a pack, a list of scenarios or the path of a scenario file, "
            f"not {shown(node.plain())}"
        )
        self.mistakes.add(node.place, problem)
        return ()

    def _named(self, node: Node, name: str) -> tuple[Scenario, ...]:
        if is_built_in(name):
            return load_pack(name)
        if PurePath(name).suffix.lower() in _FILE_SUFFIXES:
            return self._from_file(node, name)
        if name in known_packs():
            return self._installed(node, name)
        problem = (
            f"{shown(name)} is neither a scenario pack (there is {', '.join(known_packs())}) "
            f"nor the path of a file that ends in {', '.join(_FILE_SUFFIXES)}"
        )
        self.mistakes.add(node.place, problem)
        return ()

    def _installed(self, node: Node, name: str) -> tuple[Scenario, ...]:
        try:
            return load_pack(name)
        except BrokenPlugin as error:
            self.mistakes.add(node.place, str(error))
            return ()

    def _from_file(self, node: Node, name: str) -> tuple[Scenario, ...]:
        if self.base_folder is None:
            problem = "a file cannot be read from here: write the scenarios out in its place"
            self.mistakes.add(node.place, problem)
            return ()
        try:
            text = read_text(self.base_folder / name)
        except InvalidInput as error:
            folder = self.base_folder.absolute()
            self.mistakes.add(node.place, f"{shown(name)} in {folder}: {error}")
            return ()
        if name.lower().endswith(".jsonl"):
            entries = list(parse_json_lines(text, name, self.mistakes))
            return self._listed(node, entries)
        try:
            document = parse_document(text, name, self.mistakes)
        except Unreadable as error:
            self.mistakes.add(error.place, error.problem)
            return ()
        return self._from_document(document)

    def _from_document(self, document: Node) -> tuple[Scenario, ...]:
        for name, field in (document.fields or {}).items():
            if name not in _FILE_FIELDS:
                self.mistakes.add(field.place, unknown_field(name, _FILE_FIELDS))
        entries = document.entry("scenarios") if document.fields else document
        if entries and isinstance(entries.value, list):
            return self._listed(entries, entries.value)
        place = document.place_of(("scenarios",)) if document.fields else document.place
        self.mistakes.add(place, "must be a list of scenarios")
        return ()

    def _listed(self, node: Node, entries: Sequence[Node]) -> tuple[Scenario, ...]:
        if not entries:
            self.mistakes.add(node.place, "must name at least one scenario")
        if self.predecessor and any(map(_is_bare_name, entries)):
            return self._listed_by(self.predecessor, node, entries)
        scenarios: dict[str, Scenario] = {}
        for entry, scenario in self._each(entries):
            if scenario.id in scenarios:
                problem = f"scenario {shown(scenario.id)} is listed more than once"
                self.mistakes.add(entry.place_of(("id",) if entry.fields else ()), problem)
            scenarios[scenario.id] = scenario
        return tuple(scenarios.values())

    def _listed_by(
        self, predecessor: Predecessor, node: Node, entries: Sequence[Node]
    ) -> tuple[Scenario, ...]:
        """Replace scenario names of the predecessor, which kept its scenarios elsewhere."""
        known = []
        for entry in entries:
            if _is_bare_name(entry):
                predecessor.left_out(entry)
            else:
                known.append(entry)
        if known:
            return self._listed(node, known)
        # With a note, since other prompts must not pass for the old ones.
        predecessor.default_pack_instead(node, DEFAULT_PACK)
        return load_pack()

    def _each(self, entries: Sequence[Node]) -> Iterator[tuple[Node, Scenario]]:
        for entry in entries:
            scenario: Scenario | None = None
            if isinstance(entry.value, str):
                scenario = self._of_the_pack(entry, entry.value)
            elif entry.fields is not None:
                scenario = self._written(entry)
            else:
                problem = (
                    f"must be the id of a scenario of {DEFAULT_PACK}, or a mapping with `id`, "
                    f"`dimension` and `prompt`, not {shown(entry.plain())}"
                )
                self.mistakes.add(entry.place, problem)
            if scenario is not None:
                yield entry, scenario

    def _of_the_pack(self, entry: Node, name: str) -> Scenario | None:
        scenario = _pack_by_id().get(name)
        if scenario is None:
            self.mistakes.add(entry.place, f"{shown(name)} {_not_in_the_pack(name)}")
        return scenario

    def _written(self, entry: Node) -> Scenario | None:
        if self.predecessor:
            entry = self.predecessor.scenario(entry)
        fields = entry.fields or {}
        name = fields["id"].value if "id" in fields else None
        if "prompt" in fields or not isinstance(name, str):
            return validate(Scenario, entry, self.mistakes)
        if known := _pack_by_id().get(name):
            written = Node.of(known.model_dump(mode="json"), entry.place).fields or {}
            return validate(Scenario, entry.with_fields({**written, **fields}), self.mistakes)
        problem = f"is missing, and {shown(name)} {_not_in_the_pack(name)}"
        self.mistakes.add(entry.place_of(("prompt",)), problem)
        validate(Scenario, entry, self.mistakes, ignore_missing=True)
        return None


def _is_bare_name(entry: Node) -> bool:
    """Whether the entry has no prompt and names a scenario that the pack does not have."""
    fields = entry.fields or {}
    name = fields["id"].value if "id" in fields else None
    return isinstance(name, str) and "prompt" not in fields and name not in _pack_by_id()


def _pack_by_id() -> dict[str, Scenario]:
    return {scenario.id: scenario for scenario in load_pack()}


def _not_in_the_pack(name: str) -> str:
    meant = close_match(name, tuple(_pack_by_id()))
    remedy = f"; did you mean {shown(meant)}?" if meant else ""
    return f"is not in {DEFAULT_PACK}{remedy}"
