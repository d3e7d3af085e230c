"""Reads files that people write, as text and as nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

from socratic_bench.errors import InvalidInput
from socratic_bench.planning.config_file.json_source import parse_json
from socratic_bench.planning.config_file.source import SIZE_LIMIT, Mistakes, Node, Place, Unreadable
from socratic_bench.planning.config_file.yaml_source import parse_yaml


def read_text(path: Path, largest: int = SIZE_LIMIT) -> str:
    """Read the text of a file of at most `largest` bytes.

    Raises InvalidInput with a sentence that does not name the file.
    """
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput("there is no such file") from None
    except IsADirectoryError:
        raise InvalidInput("is a folder, not a file") from None
    except PermissionError:
        raise InvalidInput("may not be read by this user") from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}") from None
    if len(content) > largest:
        raise InvalidInput(f"is larger than {_size(largest)}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        problem = f"is not UTF-8 text: line {line} holds the byte 0x{byte:02X}"
        raise InvalidInput(problem) from None


def _size(count: int) -> str:
    return f"{count // 1_000_000} MB" if count >= 1_000_000 else f"{count // 1000} kB"


def parse_document(text: str, file: str, mistakes: Mistakes) -> Node:
    """Read the document in `text` as JSON or YAML, by the file's name or else by the first
    character.

    Raises Unreadable at the place where the reading ends.
    """
    if not text.strip():
        raise Unreadable(Place(file), "is empty")
    if len(text) > SIZE_LIMIT:
        raise Unreadable(Place(file), f"is larger than {_size(SIZE_LIMIT)}")
    suffix = PurePath(file).suffix.lower()
    is_yaml = suffix in {".yaml", ".yml"}
    if suffix == ".json" or (not is_yaml and text.lstrip().startswith("{")):
        return parse_json(text, file, mistakes)
    return parse_yaml(text, file, mistakes)


def parse_json_lines(text: str, file: str, mistakes: Mistakes) -> Iterator[Node]:
    """Read the documents of a JSON Lines file. A broken line is a mistake and hides no other."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield parse_json(line, file, mistakes, first_line=number)
        except Unreadable as error:
            mistakes.add(error.place, error.problem)
