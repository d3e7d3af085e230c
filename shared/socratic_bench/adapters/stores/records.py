"""Facts as rows, and rows as facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

import structlog
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from socratic_bench.domain.run import NORMAL, request_groups
from socratic_bench.errors import StoreUnreadable
from socratic_bench.invalid_values import mistakes_in

log = structlog.get_logger(__name__)

Row: TypeAlias = Mapping[str, Any]
Fact = TypeVar("Fact")

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""The errors of a broken record, and of a record of an unknown kind."""

_MOST_NAMED: Final = 5
"""The most rows that one line of the log names."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """Return a time as whole microseconds since 1970-01-01 UTC, exactly."""
    return (time.astimezone(UTC) - _EPOCH) // _MICROSECOND


def time_at(microseconds: int) -> datetime:
    """Return the UTC time so many microseconds after 1970-01-01 UTC."""
    return _EPOCH + microseconds * _MICROSECOND


def record_of(fact: BaseModel) -> str:
    """Return the content of the column `record` for a fact."""
    return fact.__pydantic_serializer__.to_json(fact).decode()


@dataclass(frozen=True, slots=True)
class Records(Generic[Fact]):
    """Reads the rows of a table, whose key columns come first.

    It ignores fields of newer versions.
    """

    table: str
    key: int
    """The number of key columns."""

    read: Callable[[Sequence[Any]], Fact]

    def fact(self, row: Sequence[Any]) -> Fact:
        """Return the fact in a row. Raises StoreUnreadable, which names the row."""
        try:
            return self.read(row)
        except _UNREADABLE as error:
            raise StoreUnreadable(
                f"{self.table}: this version cannot read the row of {self._name(row)}; upgrade "
                f"Socratic Bench, or repair the row: {_reason(error)}"
            ) from error

    def facts(self, rows: Iterable[Sequence[Any]]) -> list[Fact]:
        """Return the facts in rows; leave out unreadable rows, and name them in the log."""
        facts: list[Fact] = []
        left_out: dict[str, str] = {}
        for row in rows:
            try:
                facts.append(self.read(row))
            except _UNREADABLE as error:
                left_out[self._name(row)] = _reason(error)
        if left_out:
            named = dict(islice(left_out.items(), _MOST_NAMED))
            log.warning("rows left out", table=self.table, rows=len(left_out), unreadable=named)
        return facts

    def _name(self, row: Sequence[Any]) -> str:
        return " ".join(map(str, row[: self.key]))


# D-116: otherwise an older `submit` would delete a newer version's fields.
def with_fields_of(stored: str, manifest: str) -> str:
    """Return `manifest` with the fields that only `stored`, of the same experiment, has, and its
    name: a newer version wrote them and needs them, and a name that moved would lose its owner.
    """
    if stored == manifest:
        return stored
    before = from_json(stored)
    merged = _merged(before, from_json(manifest))
    named = {"name": before["name"]} if before.get("name") else {}
    return to_json({**merged, **named}).decode()


def _groups_of_row(row: Sequence[Any]) -> tuple[str, frozenset[str]]:
    """Read the experiment's id and the groups of its requests from (experiment_id, manifest).

    It also reads a manifest that this version understands only in part.
    """
    experiment_id, manifest = row
    fields = from_json(manifest)
    models = (model["id"] for model in fields["models"])
    return experiment_id, request_groups(models, fields.get("priority", NORMAL))


GROUPS: Final = Records("experiments", 1, _groups_of_row)
"""Reads the groups of requests of experiments."""


def with_pin(manifest: str, at: datetime | None) -> str:
    """Return the record of a manifest with the time of its pin, or without a pin."""
    fields = from_json(manifest)
    fields.pop("pinned_at", None)
    return to_json(fields if at is None else {**fields, "pinned_at": at}).decode()


def ended_after(manifest: str, planned: int, repeats: int | None) -> tuple[str, int]:
    """Return the record of a manifest that ended after these repeats, and its planned runs, given
    those of all repeats; None: both as they are.
    """
    if repeats is None:
        return manifest, planned
    fields = from_json(manifest)
    record = to_json({**fields, "stopped_after": repeats}).decode()
    return record, planned // fields["repeats"] * repeats


def _merged(stored: Any, new: Any) -> Any:
    if isinstance(stored, dict) and isinstance(new, dict):
        merged = {name: _merged(value, new.get(name, value)) for name, value in stored.items()}
        return merged | {name: value for name, value in new.items() if name not in stored}
    if isinstance(stored, list) and isinstance(new, list) and len(stored) == len(new):
        return [_merged(before, after) for before, after in zip(stored, new, strict=True)]
    return new


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):  # without the input, which may be a person's text
        return mistakes_in(error)
    return f"{type(error).__name__}: {error}"
