"""What a consumer holds stays invisible for as long as a call takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

from socratic_bench.adapters.brokers.sqs.consumer import InvisibilityHeartbeat
from socratic_bench.adapters.brokers.sqs.server_queue import Incoming, ServerQueue, incoming_of
from socratic_bench.adapters.brokers.sqs.wire import encode, typed
from socratic_bench.adapters.brokers.unacked import UnackedMessages
from socratic_bench.events.codec import Message


class Queue(ServerQueue):
    """Keeps what it is asked to show later, and refuses the handles in `gone`."""

    def __init__(self) -> None:
        self.name = "unit-queue"
        self.may_settle = True
        self.extended: list[tuple[int, list[str]]] = []
        self.gone: set[str] = set()

    async def show_in(self, seconds: int, handles: Sequence[str]) -> set[str]:
        self.extended.append((seconds, list(handles)))
        return self.gone.intersection(handles)


class Ticks:
    """A clock that a test moves on by hand."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._tick = asyncio.Event()
        self._asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._asleep.set()
        await self._tick.wait()
        self._tick.clear()

    async def pass_on(self) -> None:
        await self._asleep.wait()
        self._asleep.clear()
        self._tick.set()
        await self._asleep.wait()


def unacked() -> UnackedMessages[Incoming]:
    return UnackedMessages(
        "queue", count(1), separate_groups=False, prefetch=10, prefetch_per_group=None
    )


def arrive(held: UnackedMessages[Incoming], handle: str, arrived: float) -> None:
    message = Message(handle, "t.v1", "model", b"{}")
    encoded = encode([message])
    record = {
        "ReceiptHandle": handle,
        "Body": encoded.body,
        "MessageAttributes": typed(encoded.attributes),
    }
    held.arrive(incoming_of(record), [message], 1, arrived)


async def test_a_long_call_is_renewed_three_times_in_the_time_of_invisibility() -> None:
    queue, ticks, held = Queue(), Ticks(), unacked()
    arrive(held, "long", arrived=asyncio.get_running_loop().time() - 60)
    held.take(1, 0.0)
    beating = asyncio.create_task(InvisibilityHeartbeat(queue, held, sleep=ticks.sleep).run())
    for _ in range(30):  # five minutes of a call
        await ticks.pass_on()
    beating.cancel()
    await asyncio.wait([beating])
    assert queue.extended == [(30, ["long"])] * 30
    assert set(ticks.slept) == {10.0}


async def test_settled_and_new_messages_cost_nothing() -> None:
    queue, held = Queue(), unacked()
    now = asyncio.get_running_loop().time()
    arrive(held, "settled", arrived=now - 60)
    arrive(held, "new", arrived=now)
    [settled] = held.take(1, now)
    held.settle([settled])
    await InvisibilityHeartbeat(queue, held).beat()
    assert queue.extended == []


async def test_what_sqs_took_back_is_not_in_hand_any_more() -> None:
    queue, held = Queue(), unacked()
    then = asyncio.get_running_loop().time() - 60
    arrive(held, "kept", then)
    arrive(held, "lost", then)
    kept, lost = held.take(2, then)
    queue.gone.add("lost")
    await InvisibilityHeartbeat(queue, held).beat()
    assert held.part(kept)
    assert held.part(lost) is None
    assert held.held == 1
