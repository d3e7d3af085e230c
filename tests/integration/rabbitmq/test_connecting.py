"""An attempt to connect that is cancelled leaves nothing behind."""

from __future__ import annotations

import asyncio

import pytest

from socratic_bench.adapters.brokers.rabbitmq.connection import ReconnectingConnection
from tests.servers import rabbitmq
from tests.waiting import until

pytestmark = [pytest.mark.connected, pytest.mark.long]

ROUNDS = 400


async def others() -> set[str]:
    """The tasks beside the test."""
    return {repr(task) for task in asyncio.all_tasks() - {asyncio.current_task()}}


async def test_an_attempt_that_is_cancelled_at_any_moment_leaves_no_task_behind() -> None:
    connecting_to = ReconnectingConnection(await asyncio.to_thread(rabbitmq.SERVER.address))
    for steps in range(ROUNDS):
        connecting = asyncio.create_task(connecting_to.another())
        for _ in range(steps):
            await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.wait([connecting])
        if not connecting.cancelled():
            await connecting.result().close()
        await until(others, lambda left: not left, f"the end of attempt {steps}", patience=30)
