"""The in-process broker beyond the port: order, bounds, and no leftovers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.errors import BrokerError, InvalidInput
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Consumer, Delivery, WorkQueue
from tests.waiting import waiting_for

QUEUE = WorkQueue("judge-response", "response.v1")
NEWS = "news.v1"


@pytest.fixture
async def broker() -> AsyncIterator[MemoryBroker]:
    opened = MemoryBroker(max_waiting=50, listener_buffer=3)
    await opened.declare([QUEUE], broadcasts=[NEWS])
    yield opened
    await opened.close()


def _messages(group: str, *numbers: int) -> list[Message]:
    return [Message(f"{group}{number}", QUEUE.event_type, group, b"") for number in numbers]


def _ids(deliveries: list[Delivery]) -> list[str]:
    return [delivery.message.id for delivery in deliveries]


async def _receive(consumer: Consumer, limit: int) -> list[Delivery]:
    async with waiting_for("deliveries"):
        return list(await consumer.receive(limit))


async def test_a_group_is_first_in_first_out(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", 1, 2, 3))
    await broker.publish(_messages("a", 4))
    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        assert _ids(await _receive(consumer, 9)) == ["a1", "a2", "a3", "a4"]


async def test_groups_alternate_within_one_receive(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", 1, 2, 3) + _messages("b", 1) + _messages("c", 1, 2))
    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        assert _ids(await _receive(consumer, 9)) == ["a1", "b1", "c1", "a2", "c2", "a3"]


async def test_turns_go_on_where_the_last_receive_ended(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", 1, 2) + _messages("b", 1) + _messages("c", 1))
    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        received = [_ids(await _receive(consumer, 1)) for _ in range(4)]
    assert received == [["a1"], ["b1"], ["c1"], ["a2"]]


async def test_a_receive_returns_all_that_is_ready_up_to_its_limit(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", *range(20)))
    async with broker.consume(QUEUE.name, prefetch=15) as consumer:
        assert len(await _receive(consumer, 9)) == 9
        assert len(await _receive(consumer, 9)) == 6


async def test_what_comes_back_is_the_first_of_its_group_again(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", 1, 2, 3, 4))
    async with broker.consume(QUEUE.name, prefetch=3) as consumer:
        [_, second, _] = await _receive(consumer, 3)
        await consumer.retry(second, 0, "again")
        assert _ids(await _receive(consumer, 1)) == ["a2"]
    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        assert _ids(await _receive(consumer, 9)) == ["a1", "a3", "a2", "a4"]


async def test_redriven_messages_are_the_last_of_their_group(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", 1, 2))
    async with broker.consume(QUEUE.name, prefetch=1) as consumer:
        await consumer.reject((await _receive(consumer, 1))[0], "broken")
        await broker.redrive(QUEUE.name)
        [first] = await _receive(consumer, 1)
        await consumer.ack([first])
        assert [first.message.id, *_ids(await _receive(consumer, 1))] == ["a2", "a1"]


async def test_a_redrive_goes_beyond_a_full_queue(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", *range(5)))
    async with broker.consume(QUEUE.name, prefetch=5) as consumer:
        for delivery in await _receive(consumer, 5):
            await consumer.reject(delivery, "broken")
    await broker.publish(_messages("b", *range(50)))
    assert await broker.redrive(QUEUE.name) == 5
    assert await broker.depth(QUEUE.name) == 55


async def test_several_tasks_may_receive_from_one_consumer(broker: MemoryBroker) -> None:
    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        receiving = [asyncio.create_task(_receive(consumer, 1)) for _ in range(3)]
        await asyncio.sleep(0)
        await broker.publish(_messages("a", 1, 2, 3))
        received = await asyncio.gather(*receiving)
    assert sorted(_ids([one for share in received for one in share])) == ["a1", "a2", "a3"]


async def test_other_tasks_run_although_the_queue_is_never_empty(broker: MemoryBroker) -> None:
    other_task_ran = asyncio.Event()
    await broker.publish(_messages("a", *range(10)))
    async with broker.consume(QUEUE.name, prefetch=1) as consumer:
        asyncio.get_running_loop().call_soon(other_task_ran.set)
        for _ in range(3):
            await consumer.ack(await consumer.receive(1))
        assert other_task_ran.is_set()


async def test_a_listener_that_lags_loses_the_oldest(broker: MemoryBroker) -> None:
    async with broker.listen(NEWS) as listener:
        await broker.publish([Message(f"n{number}", NEWS, "g", b"") for number in range(10)])
        heard = [await anext(aiter(listener)) for _ in range(3)]
    assert [message.id for message in heard] == ["n7", "n8", "n9"]


async def test_delayed_messages_leave_no_timer_after_closing(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", 1))
    async with broker.consume(QUEUE.name, prefetch=1) as consumer:
        [delivery] = await _receive(consumer, 1)
        await consumer.retry(delivery, 0.01, "later")
    timers = [timer for _, timer in broker._queue(QUEUE.name)._delayed.values()]
    await broker.close()
    assert [timer.cancelled() for timer in timers] == [True]


@pytest.mark.parametrize(("prefetch", "per_group"), [(0, None), (1, 0)])
async def test_a_prefetch_that_would_never_receive_is_refused(
    broker: MemoryBroker, prefetch: int, per_group: int | None
) -> None:
    with pytest.raises(InvalidInput, match=QUEUE.name):
        async with broker.consume(QUEUE.name, prefetch=prefetch, prefetch_per_group=per_group):
            pass


async def test_groups_and_consumers_that_are_gone_are_forgotten(broker: MemoryBroker) -> None:
    async with (
        broker.consume(QUEUE.name, prefetch=9, prefetch_per_group=2) as idle,
        broker.consume(QUEUE.name, prefetch=9, prefetch_per_group=2) as consumer,
    ):
        for number in range(200):
            await broker.publish(_messages(f"g{number}", 1))
            await consumer.ack(await _receive(consumer, 1))
        queue = broker._queue(QUEUE.name)
        assert queue._groups == {}
        assert [len(idle._turns), len(idle._turns._in_hand)] == [0, 0]
        assert [len(consumer._turns), len(consumer._turns._in_hand)] == [0, 0]
    assert queue._turns == []
    assert broker._consumers == set()


async def test_cancelled_waits_leave_nothing_in_line(broker: MemoryBroker) -> None:
    async with broker.consume(QUEUE.name, prefetch=9) as consumer:
        for _ in range(20):
            receiving = asyncio.create_task(consumer.receive(1))
            await asyncio.wait({receiving}, timeout=0.001)
            assert len(consumer._turns.receivers) == 1
            receiving.cancel()
            await asyncio.wait({receiving})
        assert len(consumer._turns.receivers) == 0


async def test_a_listener_that_is_gone_is_forgotten(broker: MemoryBroker) -> None:
    async with broker.listen(NEWS):
        pass
    assert broker._routes[NEWS].listeners == []


async def test_publishers_go_on_in_the_order_in_which_they_came(broker: MemoryBroker) -> None:
    await broker.publish(_messages("full", *range(50)))
    early = [asyncio.create_task(broker.publish(_messages("p", number))) for number in (1, 2)]
    await asyncio.wait(early, timeout=0.001)
    delivered: list[Delivery] = []

    async def make_room_and_use_it() -> None:
        delivered.extend(await consumer.receive(1))
        await broker.publish(_messages("p", 3))

    async with broker.consume(QUEUE.name, prefetch=99) as consumer:
        late = asyncio.create_task(make_room_and_use_it())
        async with waiting_for("all messages"):
            await asyncio.wait({late}, timeout=0.001)
            while len(delivered) < 53:
                delivered += await consumer.receive(1)
            await asyncio.gather(late, *early)
    order = [one for one in _ids(delivered) if one.startswith("p")]
    assert order == ["p1", "p2", "p3"]


async def test_a_full_group_costs_a_step_nothing() -> None:
    """250 groups at their limit are not looked at: they are not in the ring at all."""
    broker = MemoryBroker()
    await broker.declare([QUEUE])
    for number in range(250):
        await broker.publish(_messages(f"slow{number}-", 1, 2, 3))
    async with broker.consume(QUEUE.name, prefetch=1_000, prefetch_per_group=2) as consumer:
        assert len(await _receive(consumer, 1_000)) == 500
        await broker.publish(_messages("quick", 1))
        assert len(consumer._turns) == 1
        assert _ids(await _receive(consumer, 1_000)) == ["quick1"]
    await broker.close()


async def test_an_error_says_which_message_and_why(broker: MemoryBroker) -> None:
    await broker.publish(_messages("a", 1))
    async with broker.consume(QUEUE.name, prefetch=1) as consumer:
        [delivery] = await _receive(consumer, 1)
        await consumer.ack([delivery])
        with pytest.raises(BrokerError, match=r"'judge-response'.*'a1'.*settled before"):
            await consumer.ack([delivery])
