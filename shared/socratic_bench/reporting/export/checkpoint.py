"""The checkpoint of an export: how far its file is, and until when a request is at work on it."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from pydantic import BaseModel, ConfigDict

from socratic_bench.reporting.export.writing import Written

HELD_SECONDS: Final = 40
"""Seconds for which a request has the checkpoint, longer than a function may live after it."""

CONTINUED_SECONDS: Final = 15 * 60
"""Seconds after which nobody goes on with a file: its first rows are of another time by then."""


class Checkpoint(BaseModel):
    """What is written of a file, or that it is complete."""

    model_config = ConfigDict(frozen=True)

    key: str
    revision: str
    """The store's revision at the file's first row."""

    changed_at: datetime
    held_until: datetime
    is_complete: bool = False
    place: int = 0
    state: str = ""
    upload: str | None = None
    parts: tuple[str, ...] = ()

    @classmethod
    def begin(cls, folder: str, revision: str, now: datetime) -> Checkpoint:
        # No other file ever has this key: a link leads to one content.
        unique = sha256(revision.encode()).hexdigest()[:8]
        key = f"{folder}{now:%Y%m%dT%H%M%S%fZ}-{unique}"
        return cls(key=key, revision=revision, changed_at=now, held_until=now)

    def held(self, now: datetime) -> Checkpoint:
        until = now + timedelta(seconds=HELD_SECONDS)
        return self.model_copy(update={"changed_at": now, "held_until": until})

    def abandoned(self, now: datetime) -> Checkpoint:
        long_ago = now - timedelta(seconds=CONTINUED_SECONDS)
        return self.model_copy(update={"changed_at": long_ago, "held_until": now})

    def after(
        self, written: Written, upload: str | None, parts: tuple[str, ...], now: datetime
    ) -> Checkpoint:
        return self.model_copy(
            update={
                "changed_at": now,
                "held_until": now,
                "is_complete": written.is_complete,
                "place": written.place,
                "state": written.state.decode(),
                "upload": upload,
                "parts": parts,
            }
        )

    def may_continue(self, now: datetime) -> bool:
        return not self.is_complete and self.age(now) < CONTINUED_SECONDS

    def age(self, now: datetime) -> float:
        return (now - self.changed_at).total_seconds()


def encoded(checkpoint: Checkpoint, rest: bytes) -> bytes:
    """Return a checkpoint and the bytes of its file that are in no part yet."""
    return checkpoint.model_dump_json().encode() + b"\n" + rest


def decoded(content: bytes) -> tuple[Checkpoint, bytes]:
    """Return what was encoded."""
    head, _, rest = content.partition(b"\n")
    return Checkpoint.model_validate_json(head), rest
