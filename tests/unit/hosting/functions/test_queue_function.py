"""A function answers in time, whatever its work waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from unittest.mock import AsyncMock

import pytest

from socratic_bench.concurrency.deadlines import finish_despite_cancel
from socratic_bench.consuming.dispatch import BatchDispatcher, Dispatcher
from socratic_bench.consuming.outcomes import Handled, Settlement
from socratic_bench.consuming.waits import Waits
from socratic_bench.errors import StoreUnavailable
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import RunRequested
from socratic_bench.hosting.functions import queue_function as module
from socratic_bench.hosting.functions.queue_function import QueueFunction, QueueWork
from socratic_bench.ports.broker import Delivery
from tests.unit.events.examples import TIME
from tests.unit.services.two_runs import EXPERIMENT

REQUEST = to_message(RunRequested.of(next(EXPERIMENT.runs()), source="test", time=TIME))
RECORDS = [{"messageId": each, "eventSourceARN": "arn:aws:sqs:::runs"} for each in ("one", "two")]
ALL_FAILED = {"batchItemFailures": [{"itemIdentifier": "one"}, {"itemIdentifier": "two"}]}
NONE_FAILED: dict[str, list[Any]] = {"batchItemFailures": []}


class Invocation:
    """What Lambda tells of an invocation that ends in so many seconds."""

    aws_request_id = "an-invocation"

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return round((self._ends_at - time.monotonic()) * 1000)


class TakenRecords:
    """Records of an event, which fail until they are settled or put back."""

    def __init__(self, put_back: Callable[[], Awaitable[object]]) -> None:
        self._open: dict[int, str] = {}
        self._put_back = put_back

    async def take(self, records: Sequence[Any]) -> list[Delivery]:
        self._open = {number: each["messageId"] for number, each in enumerate(records)}
        return [Delivery(REQUEST, 1, receipt) for receipt in self._open]

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        for each in settlements:
            del self._open[each.delivery.receipt]

    async def put_back(self) -> None:
        await self._put_back()
        self._open.clear()

    def response(self) -> dict[str, list[dict[str, str]]]:
        return {"batchItemFailures": [{"itemIdentifier": each} for each in self._open.values()]}


class Handler:
    """Waits for a store, which an invocation must not do longer than it lasts."""

    def __init__(self) -> None:
        self.store = asyncio.Event()
        self.ended = 0
        self.waits = Waits()
        self.error: StoreUnavailable | None = None
        """What it says that it waits for."""

    async def __call__(self, batch: Sequence[Any]) -> AsyncGenerator[list[Handled], None]:
        try:
            with self.waits.waiting() as waits_for:
                waits_for(self.error)
                await finish_despite_cancel(self.store.wait(), patience=5.0)
        finally:
            self.ended += 1
        yield [Handled(each) for each in batch]


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def put_back() -> AsyncMock:
    return AsyncMock()


@pytest.fixture
def function(
    handler: Handler, put_back: AsyncMock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[QueueFunction]:
    monkeypatch.setattr(module, "CLEAN_UP_SECONDS", 0.01)

    @asynccontextmanager
    async def opened() -> AsyncIterator[dict[str, QueueWork]]:
        async def publish(_messages: Sequence[Any]) -> None: ...

        dispatcher = BatchDispatcher(
            publish, Dispatcher(handler, RunRequested, waits=handler.waits)
        )
        yield {"runs": QueueWork(partial(TakenRecords, put_back), dispatcher)}

    function = QueueFunction("runner", opened)
    yield function
    loop = function._environment._loop
    assert loop is not None
    handler.store.set()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.wait(left))
    loop.close()


def test_work_that_ends_in_time_is_settled(function: QueueFunction, handler: Handler) -> None:
    handler.store.set()
    assert function({"Records": RECORDS}, Invocation(60)) == NONE_FAILED


def test_it_answers_although_cancelled_work_has_not_ended(
    function: QueueFunction, handler: Handler
) -> None:
    invocation = Invocation(module.LAST_SECONDS)
    assert function({"Records": RECORDS}, invocation) == ALL_FAILED
    assert handler.ended == 0
    assert invocation.get_remaining_time_in_millis() > 0


def test_what_had_not_ended_ends_in_the_next_invocation(
    function: QueueFunction, handler: Handler
) -> None:
    assert function({"Records": RECORDS}, Invocation(module.LAST_SECONDS)) == ALL_FAILED
    handler.store.set()
    assert function({"Records": RECORDS}, Invocation(60)) == NONE_FAILED
    assert handler.ended == 2


def test_work_that_was_frozen_past_the_end_takes_what_came_meanwhile(
    function: QueueFunction, handler: Handler
) -> None:
    handler.store.set()
    assert function({"Records": RECORDS}, Invocation(0)) == NONE_FAILED
    assert handler.ended == 1


def test_work_that_waits_for_the_store_at_the_end_is_put_back(
    function: QueueFunction, handler: Handler, put_back: AsyncMock
) -> None:
    handler.error = StoreUnavailable("the table is throttled")
    assert function({"Records": RECORDS}, Invocation(module.LAST_SECONDS)) == NONE_FAILED
    put_back.assert_awaited_once()


def test_work_that_waits_for_nothing_fails(function: QueueFunction, put_back: AsyncMock) -> None:
    assert function({"Records": RECORDS}, Invocation(module.LAST_SECONDS)) == ALL_FAILED
    put_back.assert_not_awaited()


def test_it_answers_although_the_broker_takes_nothing_back(
    function: QueueFunction, handler: Handler, put_back: AsyncMock
) -> None:
    handler.error = StoreUnavailable("the table is throttled")
    put_back.side_effect = asyncio.Event().wait
    invocation = Invocation(module.LAST_SECONDS)
    assert function({"Records": RECORDS}, invocation) == ALL_FAILED
    assert invocation.get_remaining_time_in_millis() > 0
