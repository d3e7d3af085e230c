"""The base of every role of the store in DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.adapters.stores.records import microseconds
from socratic_bench.errors import StoreError

Now = Callable[[], datetime]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Role = TypeVar("Role", bound="DynamoDBRole")


def ends_before_close(
    method: Callable[Concatenate[Role, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Role, Parameters], Coroutine[Any, Any, Result]]:
    """Have `close` wait for a method that writes in several requests."""

    @wraps(method)
    async def waited_for(
        self: Role, /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        with self._table.in_use():
            return await method(self, *args, **kwargs)

    return waited_for


def _machine_time() -> datetime:
    return datetime.now(UTC)


class DynamoDBRole:
    """A table, and a clock."""

    def __init__(self, table: DynamoTable, now: Now | None = None) -> None:
        """Without `now` the store reads the machine's clock: DynamoDB tells no time.

        Processes on AWS have theirs from one service, within milliseconds of each other.
        """
        self._table = table
        self._time = now or _machine_time

    def _now(self) -> int:
        """The time in microseconds since 1970-01-01 UTC."""
        return microseconds(self._time())

    def _no_experiment(self, experiment_id: str) -> StoreError:
        return StoreError(f"{self._table.name}: there is no experiment {experiment_id}")
