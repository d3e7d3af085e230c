"""Tasks that a cancellation does not end at once."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from socratic_bench.concurrency import deadlines
from socratic_bench.concurrency.deadlines import cancelled
from tests.waiting import waiting_for


async def test_a_task_that_loses_a_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deadlines, "CANCEL_AGAIN_SECONDS", 0.01)
    begun = asyncio.Event()

    async def lose_one() -> None:
        with suppress(asyncio.CancelledError):
            begun.set()
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    task = asyncio.create_task(lose_one())
    async with waiting_for("the end of the task"):
        await begun.wait()
        await cancelled(task)
    assert task.cancelled()
