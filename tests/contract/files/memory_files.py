"""Files in memory, with the promises of the port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count

from socratic_bench.ports.files import Files, SavedAs, UploadGone, Versioned


@dataclass(slots=True)
class MemoryFiles(Files):
    """What S3 would hold."""

    stored: dict[str, bytes] = field(default_factory=dict)
    saved_as: dict[str, SavedAs] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=count)

    async def read(self, key: str) -> Versioned | None:
        if key not in self.stored:
            return None
        return Versioned(self.stored[key], _etag(self.stored[key]))

    async def replace(self, key: str, content: bytes, etag: str | None) -> str | None:
        found = await self.read(key)
        if (None if found is None else found.etag) != etag:
            return None
        self.stored[key] = content
        return _etag(content)

    async def write(self, key: str, content: bytes, saved_as: SavedAs) -> None:
        self.stored[key] = content
        self.saved_as[key] = saved_as

    async def begin_upload(self, key: str, saved_as: SavedAs) -> str:
        upload = f"upload-{next(self._numbers)}"
        self.uploads[upload] = {}
        self.saved_as[key] = saved_as
        return upload

    async def add_part(self, key: str, upload: str, number: int, content: bytes) -> str:
        if upload not in self.uploads:
            raise UploadGone(f"{key}: there is no {upload}")
        self.uploads[upload][number] = content
        return _etag(content)

    async def finish_upload(self, key: str, upload: str, parts: Sequence[str]) -> None:
        if upload not in self.uploads:
            raise UploadGone(f"{key}: there is no {upload}")
        numbered = self.uploads.pop(upload)
        contents = [numbered[number] for number in range(1, len(parts) + 1)]
        assert [_etag(each) for each in contents] == list(parts)
        self.stored[key] = b"".join(contents)

    async def link(self, key: str, seconds: int) -> str:
        return f"https://files.example/{key}?seconds={seconds}"

    def linked(self, address: str) -> bytes:
        """The content that an address leads to."""
        return self.stored[address.removeprefix("https://files.example/").partition("?")[0]]


def _etag(content: bytes) -> str:
    return sha256(content).hexdigest()
