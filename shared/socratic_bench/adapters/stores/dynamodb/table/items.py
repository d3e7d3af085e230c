"""Items as Python has them, and as DynamoDB has them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

PK: Final = "PK"
SK: Final = "SK"

VERSION: Final = "version"
"""The attribute that grows with each change of an item which several processes change."""

SMALL: Final = 512
"""Bytes. Longer texts are compressed: a write unit is a kilobyte."""

MOST_ITEM_BYTES: Final = 380_000
"""An item has at most 400 KB, as DynamoDB counts them."""

Value: TypeAlias = str | int | bytes | bool
Item: TypeAlias = Mapping[str, Value]
"""The attributes of an item. Numbers are integers."""


class Key(NamedTuple):
    """The key of an item."""

    partition: str
    sort: str


def key_of(item: Item) -> Key:
    return Key(str(item[PK]), str(item[SK]))


def at(key: Key, attributes: Mapping[str, Value | None]) -> Item:
    """Return the item at `key`, without attributes that are None."""
    present = {name: value for name, value in attributes.items() if value is not None}
    return {PK: key.partition, SK: key.sort, **present}


def encoded(item: Item) -> dict[str, Any]:
    return {name: encoded_value(value) for name, value in item.items()}


def encoded_key(key: Key) -> dict[str, Any]:
    return {PK: {"S": key.partition}, SK: {"S": key.sort}}


def encoded_value(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case str():
            return {"S": value}


def decoded(attributes: Mapping[str, Mapping[str, Any]]) -> Item:
    return {name: _decoded_value(value) for name, value in attributes.items()}


def _decoded_value(value: Mapping[str, Any]) -> Value:
    [(kind, content)] = value.items()
    number: Value = int(content) if kind == "N" else content
    return number


def packed(text: str) -> str | bytes:
    """Return `text`, or its compressed form where that is shorter."""
    content = text.encode()
    if len(content) <= SMALL:
        return text
    compressed = zlib.compress(content)
    return compressed if len(compressed) < len(content) else text


def unpacked(value: Value) -> str:
    """Return the text whose `packed` form is `value`."""
    return zlib.decompress(value).decode() if isinstance(value, bytes) else str(value)


def size(item: Item) -> int:
    """Return the bytes of an item, roughly, as DynamoDB counts them."""
    return sum(len(name) + _size(value) for name, value in item.items())


def _size(value: Value) -> int:
    match value:
        case str():
            return len(value.encode())
        case bytes():
            return len(value)
        case _:
            return 8


def joined(*parts: str | int) -> str:
    """Return the parts of a key as one text that only they give; numbers sort as numbers."""
    return "#".join(map(_part, parts))


def _part(part: str | int) -> str:
    if isinstance(part, int):
        return f"{part:010}"
    return part.replace("%", "%25").replace("#", "%23")
