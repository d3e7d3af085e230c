"""Many acknowledgements in one frame never cover a message that was not handled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.adapters.brokers.rabbitmq.settling import Settling
from socratic_bench.adapters.brokers.unacked import UnackedMessages
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import Delivery


class Channel:
    """A channel of the server: it numbers its deliveries and takes acknowledgements."""

    def __init__(self) -> None:
        self.tags = count(1)
        self.open: set[int] = set()
        self.acked: set[int] = set()
        self.returned: set[int] = set()
        self.frames = 0

    def deliver(self) -> Incoming:
        incoming = Incoming(self, next(self.tags))
        self.open.add(incoming.delivery_tag)
        return incoming

    def settle(self, tags: Iterable[int], settled: set[int]) -> None:
        self.frames += 1
        tags = set(tags)
        assert tags <= self.open, "the server closes a channel that settles a message twice"
        self.open -= tags
        settled |= tags


class Incoming:
    """A message as the driver presents it."""

    message_id = "id"

    def __init__(self, channel: Channel, tag: int) -> None:
        self.channel = channel
        self.delivery_tag = tag

    async def ack(self, multiple: bool = False) -> None:
        # A frame takes a while to leave.
        await asyncio.sleep(0)
        tag, earlier = self.delivery_tag, set[int]()
        if multiple:
            earlier = {each for each in self.channel.open if each < tag}
        self.channel.settle(earlier | {tag}, self.channel.acked)

    async def nack(self, requeue: bool) -> None:
        assert requeue
        await asyncio.sleep(0)
        self.channel.settle({self.delivery_tag}, self.channel.returned)


class Consumer:
    """What a consumer does with its deliveries, and what the server has to hear of that."""

    def __init__(self) -> None:
        self.channel = Channel()
        self.unacked: UnackedMessages[Incoming] = UnackedMessages(
            "queue", count(), separate_groups=False, prefetch=1_000, prefetch_per_group=None
        )
        self.settling: Any = Settling(self.unacked)  # type: ignore[arg-type]
        self.in_hand: list[Delivery] = []
        self.handled: set[int] = set()
        self.returned: set[int] = set()

    def arrive(self, number: int) -> None:
        for _ in range(number):
            messages = [Message("id", "t.v1", "", b"")]
            self.settling.arrived(self.unacked.arrive(self.channel.deliver(), messages, 1, 0.0))

    def take(self, number: int) -> None:
        self.in_hand += self.unacked.take(number, 0.0)

    async def settle(self, chosen: list[Delivery], *, to_return: bool = False) -> None:
        for delivery in chosen:
            batch = self.unacked.part(delivery).batch
            batch.to_return = to_return
            (self.returned if to_return else self.handled).add(batch.incoming.delivery_tag)
            self.in_hand.remove(delivery)
        done, _ = self.unacked.settle(chosen)
        await self.settling.finish(done)

    async def step(self, what: str, number: int) -> None:
        match what:
            case "arrive":
                self.arrive(number)
            case "drop":
                self.channel.deliver()
            case "take":
                self.take(number)
            case _:
                chosen = [each for place, each in enumerate(self.in_hand) if number >> place & 1]
                await self.settle(chosen, to_return=what == "return")


STEPS = st.lists(
    st.tuples(st.sampled_from(["arrive", "take"]), st.integers(1, 8))
    | st.tuples(st.sampled_from(["drop", "settle", "return"]), st.integers(0, 2**8)),
    max_size=40,
)


@given(STEPS, st.booleans())
def test_the_server_hears_of_each_handled_message_once_and_of_no_other(
    steps: list[tuple[str, int]], at_once: bool
) -> None:
    async def run() -> None:
        consumer = Consumer()
        consumer.arrive(8)
        consumer.take(6)
        running = []
        for step in steps:
            running.append(asyncio.create_task(consumer.step(*step)))
            await asyncio.sleep(0)  # the step has begun, and its frame may be on its way
            if not at_once:
                await running[-1]
        await asyncio.gather(*running)
        assert consumer.channel.acked == consumer.handled
        assert consumer.channel.returned == consumer.returned

    asyncio.run(run())


async def test_a_batch_of_messages_is_acknowledged_with_one_frame() -> None:
    consumer = Consumer()
    consumer.arrive(25)
    for number in (13, 12):
        consumer.take(number)
        await consumer.settle(list(consumer.in_hand))

    assert (consumer.channel.frames, len(consumer.channel.acked)) == (2, 25)
