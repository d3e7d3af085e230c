"""The files port: files that a person fetches by a link, and that several processes may write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from socratic_bench.errors import StoreError

SMALLEST_PART: Final = 5 * 1024 * 1024
"""Bytes of a part of an upload at least, but for the last one."""


class UploadGone(StoreError):
    """An upload was ended or removed by somebody else: its file has to be written anew."""


class SavedAs(NamedTuple):
    """How a browser saves a file."""

    name: str
    media_type: str


class Versioned(NamedTuple):
    """The content of a small file, and the tag of this version of it."""

    content: bytes
    etag: str


class Files(Protocol):
    """Files by their keys. Every method raises StoreError."""

    async def read(self, key: str) -> Versioned | None:
        """Return a small file; None if there is none."""
        ...

    async def replace(self, key: str, content: bytes, etag: str | None) -> str | None:
        """Write a small file if `etag` is still its version, or if there is none for None.

        Returns the tag of the new version; None if another process was faster.
        """
        ...

    async def write(self, key: str, content: bytes, saved_as: SavedAs) -> None:
        """Write a whole file."""
        ...

    async def begin_upload(self, key: str, saved_as: SavedAs) -> str:
        """Begin a file that comes in parts; returns the id of the upload."""
        ...

    async def add_part(self, key: str, upload: str, number: int, content: bytes) -> str:
        """Add a part, numbered from 1; returns its tag. The same number again replaces the part.

        Raises UploadGone.
        """
        ...

    async def finish_upload(self, key: str, upload: str, parts: Sequence[str]) -> None:
        """Put the parts together, given their tags in order: the file is there. Raises UploadGone.

        An upload that nobody finishes is removed after a day.
        """
        ...

    async def link(self, key: str, seconds: int) -> str:
        """Return an address from which anybody may fetch the file for so many seconds."""
        ...
