"""The store accepts no writes: a benchmark ends before its first call, and waits after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.domain.response import Usage
from socratic_bench.errors import StoreNotWritable
from socratic_bench.ports.models import Reply
from socratic_bench.scoring.exchange import Status
from socratic_cli.embedded import Benchmark
from tests.contract.store.facts import an_experiment
from tests.unit.services.runner.scripted import ScriptedClient
from tests.waiting import waiting_for

FULL = StoreNotWritable("the disk is full; free some space")
REPLY = Reply(
    text="What?",
    status=Status.OK,
    usage=Usage(visible_output_tokens=100, input_tokens=100),
    latency_ms=1,
    stop_reason="stop",
)


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()


async def answers(*_: object) -> Reply:
    await asyncio.sleep(0)
    return REPLY


async def test_where_no_lease_can_be_written_it_ends_before_the_first_call(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object, **_options: object) -> None:
        raise FULL

    monkeypatch.setattr(store, "take_leases", full)
    client = ScriptedClient(lambda *_: answers())
    async with waiting_for("the end of the benchmark"):
        with pytest.raises(StoreNotWritable) as raised:
            await Benchmark(an_experiment(), store, lambda _: client, limits=store).execute()
    assert raised.value is FULL
    assert client.asked == []


async def test_planning_that_cannot_be_noted_ends_no_call_and_is_waited_for(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries, waits = 0, []
    mark_planned = store.mark_planned
    begun, refused = asyncio.Event(), asyncio.Event()

    async def full_at_first(*arguments: Any) -> None:
        nonlocal tries
        await begun.wait()
        tries += 1
        if tries <= RetryPolicy().attempts:
            raise FULL
        refused.set()
        await mark_planned(*arguments)

    async def answers_in_the_end(*_: object) -> Reply:
        begun.set()
        await refused.wait()
        return REPLY

    monkeypatch.setattr(store, "mark_planned", full_at_first)
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 0.1)
    client = ScriptedClient(lambda *_: answers_in_the_end())
    benchmark = Benchmark(
        an_experiment(), store, lambda _: client, limits=store, on_wait=waits.append
    )
    async with waiting_for("the benchmark"):
        result = await benchmark.execute()
    assert result.progress.done == result.progress.planned == len(client.asked)
    assert FULL in waits
    assert waits[-1] is None
