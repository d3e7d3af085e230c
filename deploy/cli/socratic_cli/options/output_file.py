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
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise InvalidInput(f"{option}: {path} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
