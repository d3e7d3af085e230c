"""A file that a command writes: it appears once it is whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from socratic_bench.errors import InvalidInput


@contextmanager
def whole_file(path: Path, *, option: str = "--out") -> Iterator[IO[str]]:
    """Open a file for UTF-8 text that replaces `path` at the end of the context.

    An error leaves `path` as it was. Raises InvalidInput, which names `option`, if the file cannot
    be written.
    """
    with _part_of(path, option) as part, part.open("w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def whole_binary_file(path: Path, *, option: str = "--out") -> Iterator[IO[bytes]]:
    """Open a file for bytes, as `whole_file` does for text."""
    with _part_of(path, option) as part, part.open("wb") as file:
        yield file


@contextmanager
def _part_of(path: Path, option: str) -> Iterator[Path]:
    """Yield the path of a file that replaces `path` at the end, and is removed after an error."""
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise InvalidInput(f"{option}: {path} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
