"""From deliveries to settlements: published first, settled after, and nothing lost on the way."""

import asyncio
from contextlib import aclosing

import pytest

from socratic_bench.consuming.dispatch import Ack, DeadLetterIt, Dispatcher, RetryLater, to_message
from socratic_bench.consuming.outcomes import Emit, Failed, Handled, Reject, Retry
from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.domain.run import Run
from socratic_bench.errors import BrokerClosed, StoreBroken, StoreUnavailable
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.ports.broker import Delivery, Message
from tests.unit.events.examples import RUN, TIME, example_events

RECORDED = example_events()["response.recorded"]
POLICY = RetryPolicy(attempts=3, first_delay=1.0, draw=lambda: 1.0)


def requested(number: int) -> RunRequested:
    run = Run(**{**RUN.model_dump(), "run_id": f"run-{number}"})
    return RunRequested.of(run, source="test", time=TIME)


def deliveries(count: int, attempt: int = 1) -> list[Delivery]:
    return [Delivery(to_message(requested(n)), attempt, n) for n in range(count)]


class Published:
    """Takes what is published, or breaks."""

    def __init__(self, error: Exception | None = None) -> None:
        self.messages: list[Message] = []
        self.error = error

    async def __call__(self, messages) -> None:
        if self.error:
            raise self.error
        self.messages += messages


async def settle(handler, given, publish=None, event_type=RunRequested):
    dispatcher = Dispatcher(handler, event_type, publish or Published(), POLICY)
    settlements = []
    async with aclosing(dispatcher.dispatch(given)) as batches:
        async for batch in batches:
            settlements += batch
    return settlements


async def test_handled_work_is_acked_after_its_events_are_published():
    order = []

    async def publish(messages):
        order.append(("published", [message.id for message in messages]))

    async def handler(batch):
        yield [Handled(work, (RECORDED,)) for work in batch]

    dispatcher = Dispatcher(handler, RunRequested, publish, POLICY)
    order.extend(
        [
            ("settled", [type(each).__name__ for each in batch])
            async for batch in dispatcher.dispatch(deliveries(2))
        ]
    )
    assert order == [("published", [RECORDED.id] * 2), ("settled", ["Ack", "Ack"])]


async def test_outcomes_are_settled_as_they_come_not_when_the_batch_is_done():
    gate = asyncio.Event()

    async def handler(batch):
        yield [Handled(batch[0])]
        await gate.wait()
        yield [Handled(batch[1])]

    async with aclosing(
        Dispatcher(handler, RunRequested, Published(), POLICY).dispatch(deliveries(2))
    ) as batches:
        async with asyncio.timeout(5):
            first = await anext(batches)
            gate.set()
            second = await anext(batches)
    assert [first[0].delivery.receipt, second[0].delivery.receipt] == [0, 1]


async def test_what_a_handler_says_becomes_the_settlement():
    async def handler(batch):
        yield [
            Emit((RECORDED,)),
            Handled(batch[0]),
            Retry(batch[1], 7.5, "busy"),
            Reject(batch[2], "no such experiment"),
            Failed(batch[3], StoreUnavailable("gone")),
        ]

    given, publish = deliveries(4), Published()
    assert await settle(handler, given, publish) == [
        Ack(given[0]),
        RetryLater(given[1], 7.5, "busy"),
        DeadLetterIt(given[2], "no such experiment"),
        RetryLater(given[3], 1.0, "StoreUnavailable: gone"),
    ]
    assert [message.type for message in publish.messages] == [RECORDED.type]


async def test_a_message_that_is_no_event_is_dead_lettered_and_the_others_go_on():
    async def handler(batch):
        yield [Handled(work) for work in batch]

    good = deliveries(2)
    poison = Delivery(Message("x", RunRequested.model_fields["type"].default, "g", b"{"), 1, 9)
    foreign = Delivery(to_message(RECORDED), 1, 10)
    settled = await settle(handler, [good[0], poison, foreign, good[1]])
    assert [each for each in settled if isinstance(each, Ack)] == [Ack(good[0]), Ack(good[1])]
    reasons = {
        each.delivery.receipt: each.reason for each in settled if isinstance(each, DeadLetterIt)
    }
    assert "Invalid JSON" in reasons[9]
    assert "takes no org.socratic-bench.response.recorded.v1" in reasons[10]


async def test_one_poisonous_event_does_not_take_its_batch_along():
    async def handler(batch):
        if any(work.event.subject == "run-1" for work in batch):
            raise ValueError("cannot digest run-1")
        yield [Handled(work) for work in batch]

    given = deliveries(4)
    settled = await settle(handler, given)
    assert RetryLater(given[1], 1.0, "ValueError: cannot digest run-1") in settled
    assert {each.delivery.receipt for each in settled if isinstance(each, Ack)} == {0, 2, 3}
    assert len(settled) == 4


async def test_a_bug_is_dead_lettered_after_its_last_try():
    async def handler(batch):
        raise ValueError("always")
        yield

    (given,) = deliveries(1, attempt=3)
    assert await settle(handler, [given]) == [DeadLetterIt(given, "ValueError: always")]


async def test_an_absent_store_is_waited_for_however_often():
    async def handler(batch):
        raise StoreUnavailable("not now")
        yield

    (given,) = deliveries(1, attempt=30)
    (settlement,) = await settle(handler, [given])
    assert isinstance(settlement, RetryLater)
    assert settlement.delay == POLICY.longest_delay


async def test_a_broken_store_ends_the_work_and_settles_nothing():
    async def handler(batch):
        yield [Failed(batch[0], StoreBroken("disk full"))]

    with pytest.raises(StoreBroken, match="disk full"):
        await settle(handler, deliveries(2))


async def test_nothing_is_acked_when_publishing_fails():
    async def handler(batch):
        yield [Handled(work, (RECORDED,)) for work in batch]

    settled = await settle(handler, deliveries(2), Published(BrokerClosed("closed")))
    assert [type(each) for each in settled] == [RetryLater, RetryLater]


async def test_work_a_handler_forgets_is_not_lost():
    async def handler(batch):
        yield [Handled(work) for work in batch if work.event.subject != "run-1"]

    settled = await settle(handler, deliveries(3))
    kinds = {each.delivery.receipt: type(each) for each in settled}
    assert kinds == {0: Ack, 1: RetryLater, 2: Ack}


async def test_two_deliveries_of_one_event_are_both_settled():
    async def handler(batch):
        yield [Handled(work) for work in batch]

    (one,) = deliveries(1)
    again = Delivery(one.message, 2, 77)
    assert await settle(handler, [one, again]) == [Ack(one), Ack(again)]


async def test_ending_early_ends_the_handler_too():
    ended = asyncio.Event()

    async def handler(batch):
        try:
            yield [Handled(batch[0])]
            yield [Handled(batch[1])]
        finally:
            ended.set()

    dispatcher = Dispatcher(handler, RunRequested, Published(), POLICY)
    async with aclosing(dispatcher.dispatch(deliveries(2))) as batches:
        await anext(batches)
    assert ended.is_set()


async def test_events_of_another_type_never_reach_the_handler():
    async def handler(batch):
        assert all(isinstance(work.event, ResponseRecorded) for work in batch)
        yield [Handled(work) for work in batch]

    settled = await settle(handler, deliveries(1), event_type=ResponseRecorded)
    assert isinstance(settled[0], DeadLetterIt)
