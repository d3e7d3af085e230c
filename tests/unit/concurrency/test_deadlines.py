"""Deadlines hold even if the awaited work cannot be cancelled at once."""

import asyncio

import pytest

from socratic_bench.concurrency.deadlines import unless_stopped, wait_at_most, within
from tests.waiting import waiting_for


class Stubborn:
    """Work whose cancellation takes until it is let go, as that of a driver may."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            await self.go_on.wait()
            raise OSError("the connection was lost meanwhile") from None

    async def end(self):
        await self.cancelled.wait()
        self.go_on.set()
        await asyncio.sleep(0)


@pytest.fixture
async def stubborn():
    work = Stubborn()
    async with waiting_for("the deadline to hold"):
        yield work
        await work.end()


async def test_time_is_over_when_it_is_over(stubborn):
    with pytest.raises(TimeoutError):
        await within(0.01, stubborn())


async def test_a_stop_waits_for_nothing(stubborn):
    stop = asyncio.Event()
    waiting = asyncio.create_task(unless_stopped(stubborn(), stop))
    await asyncio.sleep(0)
    stop.set()
    assert await waiting is False


async def test_what_is_done_in_time_gives_its_result_or_its_error():
    async def answer():
        return 7

    async def fail():
        raise ValueError("no")

    assert await within(5, answer()) == 7
    with pytest.raises(ValueError, match="no"):
        await within(5, fail())
    with pytest.raises(ValueError, match="no"):
        await unless_stopped(fail(), asyncio.Event())
    assert await unless_stopped(answer(), asyncio.Event()) is True


async def test_whoever_waits_can_be_cancelled(stubborn):
    waiting = asyncio.create_task(within(60, stubborn()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()


async def test_waiting_for_an_event_says_whether_it_came() -> None:
    event = asyncio.Event()
    assert not await wait_at_most(0.001, event)
    assert not await wait_at_most(-1.0, event)
    asyncio.get_running_loop().call_soon(event.set)
    assert await wait_at_most(60.0, event)
    assert await wait_at_most(0.0, event)
    assert await wait_at_most(None, event)
