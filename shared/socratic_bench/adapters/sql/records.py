"""Facts as rows, and rows as facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

import structlog
from pydantic import BaseModel, ValidationError

from socratic_bench.errors import StoreUnreadable

log = structlog.get_logger(__name__)

Row: TypeAlias = Mapping[str, Any]
Fact = TypeVar("Fact")

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What comes of a record that is broken, or of a kind that this version does not know."""

_NAMED: Final = 5
"""Rows that are named in one line of the log."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(time: datetime) -> int:
    """A time as whole microseconds since 1970-01-01 UTC, exactly."""
    return (time.astimezone(UTC) - _EPOCH) // _MICROSECOND


def time_at(microseconds: int) -> datetime:
    """The time that many microseconds after 1970-01-01 UTC, in UTC."""
    return _EPOCH + microseconds * _MICROSECOND


def record_of(fact: BaseModel) -> str:
    """The fact as it stands in the column `record`."""
    return fact.__pydantic_serializer__.to_json(fact).decode()


@dataclass(frozen=True, slots=True)
class Records(Generic[Fact]):
    """How the rows of a table are read. The columns of the key come first.

    Fields that a newer version added are passed over.
    """

    table: str
    key: int
    """How many columns the key has."""

    read: Callable[[Sequence[Any]], Fact]

    def fact(self, row: Sequence[Any]) -> Fact:
        """The fact in a row. Raises StoreUnreadable, which names the row."""
        try:
            return self.read(row)
        except _UNREADABLE as error:
            raise StoreUnreadable(
                f"{self.table}: this version cannot read the row of {self._name(row)}; upgrade "
                f"Socratic Bench, or repair the row: {_reason(error)}"
            ) from error

    def facts(self, rows: Iterable[Sequence[Any]]) -> list[Fact]:
        """The facts in rows. Those that cannot be read are left out, and named in the log."""
        facts: list[Fact] = []
        left_out: dict[str, str] = {}
        for row in rows:
            try:
                facts.append(self.read(row))
            except _UNREADABLE as error:
                left_out[self._name(row)] = _reason(error)
        if left_out:
            named = dict(islice(left_out.items(), _NAMED))
            log.warning("rows left out", table=self.table, rows=len(left_out), unreadable=named)
        return facts

    def _name(self, row: Sequence[Any]) -> str:
        return " ".join(map(str, row[: self.key]))


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):  # without the input, which may be somebody's text
        first, *more = error.errors(include_url=False, include_input=False)
        also = f" (and {len(more)} more)" if more else ""
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}{also}"
    return f"{type(error).__name__}: {error}"
