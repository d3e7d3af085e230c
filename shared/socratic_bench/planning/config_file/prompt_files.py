"""Reads system prompts from files beside the configuration: `system_prompt: {file: tutor.txt}`.

The text of the file becomes part of the plan, which then does not need the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import quoted, shown
from socratic_bench.planning.config_file.documents import read_text
from socratic_bench.planning.config_file.source import (
    Mistakes,
    Node,
    Place,
    storable,
)

FIELD: Final = "system_prompt"

LARGEST_PROMPT: Final = 100_000
"""Bytes of the file of a prompt at most."""

_FORM: Final = f"`{FIELD}: {{file: prompts/tutor.txt}}`"


@dataclass(frozen=True, slots=True)
class PromptFiles:
    """Replaces prompts that name a file by the text of the file."""

    base_folder: Path | None
    """The folder that contains the files of all prompts; None forbids files."""

    mistakes: Mistakes

    def written_out(self, node: Node) -> Node:
        """Return a mapping with its prompt as text, or with a mistake and without the prompt."""
        prompt = node.entry(FIELD)
        if node.fields is None or prompt is None:
            return node
        fields = dict(node.fields)
        try:
            fields[FIELD] = self._text(prompt)
        except InvalidInput as error:
            self.mistakes.add(prompt.place, str(error))
            del fields[FIELD]
        return node.with_fields(fields)

    def _text(self, prompt: Node) -> Node:
        if isinstance(prompt.value, str) and prompt.value.startswith("file:"):
            raise InvalidInput(f"is the address of a file, not a prompt; write {_FORM}")
        if prompt.fields is None:
            return prompt
        file = prompt.entry("file")
        if file is None or len(prompt.fields) > 1 or not isinstance(file.value, str):
            raise InvalidInput(f"must be text, or the path of a file: {_FORM}")
        return Node(prompt.place, self._content(file.value, file.place))

    def _content(self, name: str, place: Place) -> str:
        """Return the text of the file with line feeds only, and no empty lines at its end."""
        if self.base_folder is None:
            raise InvalidInput("a file cannot be read from here: write the prompt out in its place")
        folder = self.base_folder.absolute()
        try:
            text = read_text(_below(self.base_folder, name), LARGEST_PROMPT)
        except InvalidInput as error:
            raise InvalidInput(f"{shown(name)} in {folder}: {error}") from None
        text = text.replace("\r\n", "\n").rstrip("\n")
        if not text.strip():
            raise InvalidInput(f"{quoted(name)} in {folder}: is empty")
        return storable(text, place, self.mistakes)


def _below(folder: Path, name: str) -> Path:
    """Return the path of a file below the folder. Raises InvalidInput for any other path."""
    try:
        path = (folder / name).resolve()
        is_below = path.is_relative_to(folder.resolve())
        is_special = path.exists() and not (path.is_file() or path.is_dir())
    except (OSError, RuntimeError, ValueError):  # a circle of links, or NUL
        raise InvalidInput("is not a path") from None
    if not is_below:
        raise InvalidInput("is not below the folder of the configuration")
    if is_special:
        raise InvalidInput("is a device or a pipe, not a file")
    return path
