"""Items as Python has them and as DynamoDB has them, and the transactions that write them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

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


class ItemKey(NamedTuple):
    """The key of an item."""

    partition: str
    sort: str


def key_of(item: Item) -> ItemKey:
    return ItemKey(str(item[PK]), str(item[SK]))


def at(key: ItemKey, attributes: Mapping[str, Value | None]) -> Item:
    """Return the item at `key`, without attributes that are None."""
    present = {name: value for name, value in attributes.items() if value is not None}
    return {PK: key.partition, SK: key.sort, **present}


def encoded(item: Item) -> dict[str, Any]:
    return {name: encoded_value(value) for name, value in item.items()}


def encoded_key(key: ItemKey) -> dict[str, Any]:
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


MOST_ACTIONS: Final = 100
"""DynamoDB's limit of a transaction."""

MOST_BYTES: Final = 3_000_000
"""Less than DynamoDB's limit of 4 MB, which counts more than we do."""

MISSING: Final = f"attribute_not_exists(#{PK})"

Kind = Literal["Put", "Update", "Delete", "ConditionCheck"]

_NAME = re.compile(r"#(\w+)")
_VALUE = re.compile(r":(\w+)")


class WriteTransaction:
    """Writes to be committed together. Names in expressions begin with `#`, values with `:`."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._keys: dict[ItemKey, int] = {}
        self.actions: list[tuple[Kind, dict[str, Any]]] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.actions)

    def key_at(self, index: int) -> ItemKey:
        """The key of an action."""
        return next(key for key, at in self._keys.items() if at == index)

    def put(
        self, item: Item, condition: str | None = None, values: Mapping[str, Value] | None = None
    ) -> None:
        self.bytes += size(item)
        self._add("Put", key_of(item), {"Item": encoded(item)}, "", condition, values)

    def put_version(self, item: Item, seen: int) -> None:
        """Replace an item that was seen at this version; 0: there was none."""
        item = {**item, VERSION: seen + 1}
        if seen:
            self.put(item, f"#{VERSION} = :seen", {"seen": seen})
        else:
            self.put(item, MISSING)

    def update(
        self,
        key: ItemKey,
        update: str,
        condition: str | None = None,
        values: Mapping[str, Value] | None = None,
    ) -> None:
        self._add("Update", key, {"Key": encoded_key(key)}, update, condition, values)

    def delete(
        self, key: ItemKey, condition: str | None = None, values: Mapping[str, Value] | None = None
    ) -> None:
        self._add("Delete", key, {"Key": encoded_key(key)}, "", condition, values)

    def check(
        self, key: ItemKey, condition: str, values: Mapping[str, Value] | None = None
    ) -> None:
        """Write nothing to this item, but expect something of it."""
        self._add("ConditionCheck", key, {"Key": encoded_key(key)}, "", condition, values)

    def _add(
        self,
        kind: Kind,
        key: ItemKey,
        action: dict[str, Any],
        update: str,
        condition: str | None,
        values: Mapping[str, Value] | None,
    ) -> None:
        self._keys[key] = len(self.actions)
        action["TableName"] = self._table
        if update:
            action["UpdateExpression"] = update
        if condition:
            action["ConditionExpression"] = condition
        expressions = f"{update} {condition or ''}"
        if names := set(_NAME.findall(expressions)):
            action["ExpressionAttributeNames"] = {f"#{name}": name for name in names}
        if used := set(_VALUE.findall(expressions)):
            given = values or {}
            action["ExpressionAttributeValues"] = {
                f":{name}": encoded_value(given[name]) for name in used
            }
        self.actions.append((kind, action))
