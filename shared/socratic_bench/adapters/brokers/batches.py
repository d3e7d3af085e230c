"""Several messages as one message of the server, in the bytes that every server carries alike.

A single message is a CloudEvent in structured mode; a batch is CloudEvents' batch format, a JSON
array of events. The server's attributes repeat the events' attributes, for people, and name the
parts of a batch, so that code can split it without parsing JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from socratic_bench.events.codec import Message

SINGLE: Final = "application/cloudevents+json"
BATCH: Final = "application/cloudevents-batch+json"

SHARES: Final = 5
"""The messages of one group in one publish are split into at least this many batches, so that
several consumers can share them."""

_BEGIN, _BETWEEN, _END = b"[\n", b",\n", b"\n]"


def batches(
    messages: Sequence[Message], size: int, *, most_bytes: int, shares: int = 1
) -> Iterator[list[Message]]:
    """Split messages, in order, into at least `shares` batches of at most `size` messages.

    A batch of `most_bytes` is full, even with few messages.
    """
    size = min(size, math.ceil(len(messages) / shares))
    batch: list[Message] = []
    length = 0
    for message in messages:
        if batch and (len(batch) >= size or length + len(message.body) > most_bytes):
            yield batch
            batch, length = [], 0
        batch.append(message)
        length += len(message.body)
    if batch:
        yield batch


def content_type_of(messages: Sequence[Message]) -> str:
    """Return the content type of one message, or of several as a batch."""
    return SINGLE if len(messages) == 1 else BATCH


def content_of(messages: Sequence[Message]) -> bytes:
    """Return the bytes of one message, or of several as a batch."""
    if len(messages) == 1:
        return messages[0].body
    return b"".join((_BEGIN, _BETWEEN.join(each.body for each in messages), _END))


def parts_of(messages: Sequence[Message]) -> list[str | int]:
    """Return the id, group and size in bytes of each message of a batch."""
    return [value for each in messages for value in (each.id, each.group, len(each.body))]


def split(content: bytes, event_type: str, parts: Sequence[object]) -> list[Message]:
    """Return the messages of a batch; none if a stranger made it or its parts."""
    lengths = [each for each in parts[2::3] if isinstance(each, int)]
    starts = accumulate((length + len(_BETWEEN) for length in lengths), initial=len(_BEGIN))
    return [
        Message(str(id_), event_type, str(group), content[start : start + length])
        for id_, group, start, length in zip(parts[::3], parts[1::3], starts, lengths, strict=False)
    ]
