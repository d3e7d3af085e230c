"""An invocation that waits takes more messages, and finishes them before it ends."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from socratic_bench.consuming.dispatch import BatchDispatcher
from socratic_bench.consuming.worker import Worker
from socratic_bench.hosting.functions import queue_function as module
from socratic_bench.hosting.functions.queue_function import taking_more


class Took:
    """A worker or a dispatcher, and what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun = asyncio.Event()
        self.told = asyncio.Event()

    async def run(self) -> None:
        self.begun.set()
        await self.told.wait()
        self.asked.append("ended")

    def take_no_more(self) -> None:
        self.asked.append("take no more")
        self.told.set()

    def drain(self) -> None:
        self.asked.append("drain")
        self.told.set()


@pytest.fixture
def worker() -> Took:
    return Took()


@pytest.fixture
def dispatcher() -> Took:
    return Took()


def taking(worker: Took, dispatcher: Took, drain_after: float = 60.0):
    return taking_more(
        cast("BatchDispatcher", dispatcher), lambda: cast("Worker", worker), drain_after
    )


async def test_a_short_invocation_takes_none(worker: Took, dispatcher: Took) -> None:
    async with taking(worker, dispatcher):
        pass
    assert not worker.begun.is_set()
    assert dispatcher.asked == []


async def test_one_that_waits_finishes_what_it_took(
    worker: Took, dispatcher: Took, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MORE_AFTER_SECONDS", 0.0)
    async with taking(worker, dispatcher):
        await worker.begun.wait()
    # Drained, each run in hand would go back as a message of its own.
    assert (worker.asked, dispatcher.asked) == (["take no more", "ended"], [])


async def test_near_its_end_it_begins_nothing_more(worker: Took, dispatcher: Took) -> None:
    async with taking(worker, dispatcher, drain_after=0.0):
        await worker.told.wait()
    assert worker.asked[0] == dispatcher.asked[0] == "drain"


async def test_one_that_is_cut_off_leaves_no_worker_behind(
    worker: Took, dispatcher: Took, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MORE_AFTER_SECONDS", 0.0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), taking(worker, dispatcher):
            await asyncio.Event().wait()
    assert asyncio.all_tasks() == {asyncio.current_task()}
