"""A transaction: writes of up to a hundred items that happen together or not at all.

Every write names what it expects of its item. DynamoDB refuses the whole transaction where one item
is otherwise, so the caller reads again and decides anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from socratic_bench.adapters.stores.dynamodb.table.items import (
    PK,
    VERSION,
    Item,
    Key,
    Value,
    encoded,
    encoded_key,
    encoded_value,
    key_of,
    size,
)

MOST_ACTIONS: Final = 100
"""DynamoDB's limit of a transaction."""

MOST_BYTES: Final = 3_000_000
"""Less than DynamoDB's limit of 4 MB, which counts more than we do."""

MISSING: Final = f"attribute_not_exists(#{PK})"

Kind = Literal["Put", "Update", "Delete", "ConditionCheck"]

_NAME = re.compile(r"#(\w+)")
_VALUE = re.compile(r":(\w+)")


class Transaction:
    """Writes to be committed together. Names in expressions begin with `#`, values with `:`."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._keys: dict[Key, int] = {}
        self.actions: list[tuple[Kind, dict[str, Any]]] = []
        self.bytes = 0

    def __len__(self) -> int:
        return len(self.actions)

    def key_at(self, index: int) -> Key:
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
        key: Key,
        update: str,
        condition: str | None = None,
        values: Mapping[str, Value] | None = None,
    ) -> None:
        self._add("Update", key, {"Key": encoded_key(key)}, update, condition, values)

    def delete(
        self, key: Key, condition: str | None = None, values: Mapping[str, Value] | None = None
    ) -> None:
        self._add("Delete", key, {"Key": encoded_key(key)}, "", condition, values)

    def check(self, key: Key, condition: str, values: Mapping[str, Value] | None = None) -> None:
        """Write nothing to this item, but expect something of it."""
        self._add("ConditionCheck", key, {"Key": encoded_key(key)}, "", condition, values)

    def _add(
        self,
        kind: Kind,
        key: Key,
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
