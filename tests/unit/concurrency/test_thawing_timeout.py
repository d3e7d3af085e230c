"""A timeout is one for work that is late, and not for work whose process was frozen."""

import asyncio
import time

import pytest

from socratic_bench.concurrency import deadlines
from socratic_bench.concurrency.deadlines import ThawingTimeout
from tests.waiting import waiting_for


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_work_that_is_late_is_ended() -> None:
    timeout = ThawingTimeout(now() + 0.01)
    with pytest.raises(TimeoutError):
        async with waiting_for("the deadline"), timeout:
            await asyncio.Event().wait()
    assert timeout.expired()


async def test_work_without_a_deadline_or_in_time_goes_on() -> None:
    async with ThawingTimeout() as timeout:
        timeout.reschedule(now() + 3600)
        await asyncio.sleep(0)
        timeout.reschedule(None)
        assert timeout.when() is None
    assert not timeout.expired()


async def test_a_cancellation_from_outside_stays_one() -> None:
    async def work() -> None:
        async with ThawingTimeout(now() + 3600):
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait([working])
    assert working.cancelled()


async def test_of_two_deadlines_the_earlier_one_ends_the_work_and_is_known() -> None:
    outer = ThawingTimeout(now() + 3600)
    async with waiting_for("the deadline"), outer:
        with pytest.raises(TimeoutError):
            async with ThawingTimeout(now() + 0.01):
                await asyncio.Event().wait()
    assert not outer.expired()


async def test_an_answer_that_came_while_the_process_was_frozen_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadlines, "FROZEN_SECONDS", 0.05)
    answered = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, answered.set)
    async with ThawingTimeout(now() + 0.01) as timeout:
        time.sleep(0.1)  # noqa: ASYNC251 - the process is frozen
        await answered.wait()
        for _ in range(10):
            await asyncio.sleep(0)
    assert not timeout.expired()


async def test_a_thawed_process_waits_no_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "FROZEN_SECONDS", 0.0)
    monkeypatch.setattr(deadlines, "THAW_SECONDS", 0.01)
    with pytest.raises(TimeoutError):
        async with waiting_for("the deadline"), ThawingTimeout(now() + 0.01):
            await asyncio.Event().wait()
