"""The recorder: the runner keeps a reply until the store has it."""

import asyncio

import pytest
import structlog

from socratic_bench.adapters.stores.memory.facts import MemoryResponses
from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.waits import Waits
from socratic_bench.errors import (
    StoreBroken,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_runner.leases.recorder import Recorded, Recorder
from tests.contract.store.facts import a_response, an_experiment
from tests.waiting import waiting_for

ONE, TWO, *_ = map(a_response, an_experiment().runs())


class FailingResponses(MemoryResponses):
    """Raises `error` so many times before it records anything."""

    def __init__(self, error, times) -> None:
        super().__init__()
        self.error = error
        self.left = times
        self.asked = asyncio.Event()
        self.calls = 0

    async def record(self, responses, lease_ids):
        self.calls += 1
        self.asked.set()
        if self.left:
            self.left -= 1
            raise self.error
        return await super().record(responses, lease_ids)


def recorded(response):
    run = response.run
    return Recorded(response, Lease(LeaseKey(run.experiment_id, run.run_id, 1, "lease"), 30.0))


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 0.0)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreBroken("odd")], ids=repr)
async def test_a_reply_is_kept_until_the_store_takes_it_whatever_the_store_says(error):
    store = FailingResponses(error, 300)
    recorder = Recorder(store, Waits())
    async with waiting_for("the store"), recorder.open():
        assert await recorder.record([recorded(ONE), recorded(TWO)]) == [ONE, TWO]
    stored = await store.responses([ONE.run.run_id, TWO.run.run_id])
    assert stored == {ONE.run.run_id: [ONE], TWO.run.run_id: [TWO]}


async def test_what_the_store_refuses_is_not_asked_again():
    store = FailingResponses(StoreRefused("too large"), 1)
    recorder = Recorder(store, Waits())
    async with waiting_for("the store"), recorder.open():
        with pytest.raises(StoreRefused):
            await recorder.record([recorded(ONE)])
    assert store.calls == 1


@pytest.mark.parametrize("times", [1, 2])
async def test_at_the_end_it_tries_once_more_and_waits_no_longer(times, monkeypatch):
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 3600.0)
    store = FailingResponses(StoreUnavailable("away"), times)
    recorder = Recorder(store, Waits())
    async with waiting_for("the last try"):
        async with recorder.open():
            storing = asyncio.create_task(recorder.record([recorded(ONE)]))
            await store.asked.wait()
        if times == 1:
            assert await storing == [ONE]
        else:
            with pytest.raises(StoreUnavailable):
                await storing


@pytest.mark.usefixtures("hurried")
async def test_a_store_that_takes_nothing_is_told_of_loudly_and_known_to_be_waited_for():
    seen = []

    class FullStore(FailingResponses):
        async def record(self, responses, lease_ids):
            seen.append(waits.error)
            return await super().record(responses, lease_ids)

    waits = Waits()
    recorder = Recorder(FullStore(StoreNotWritable("disk full"), 2), waits)
    with structlog.testing.capture_logs() as lines:
        async with recorder.open():
            await recorder.record([recorded(ONE)])
    assert [line["log_level"] for line in lines] == ["critical", "debug"]
    assert [str(error) for error in seen] == ["None", "disk full", "disk full"]
    assert waits.error is None


async def test_a_paid_reply_is_stored_although_nobody_waits_for_it_any_more(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 3600.0)
    store = FailingResponses(StoreUnavailable("away"), 1)
    recorder = Recorder(store, Waits())
    async with waiting_for("the store"), recorder.open():
        waiting = [asyncio.create_task(recorder.record([recorded(ONE)]))]
        await store.asked.wait()
        waiting.append(asyncio.create_task(recorder.record([recorded(TWO)])))
        await asyncio.sleep(0)
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
    stored = await store.responses([ONE.run.run_id, TWO.run.run_id])
    assert stored == {ONE.run.run_id: [ONE], TWO.run.run_id: [TWO]}


async def test_a_reply_on_its_way_to_the_store_can_be_asked_for(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 3600.0)
    store = FailingResponses(StoreUnavailable("away"), 1)
    recorder = Recorder(store, Waits())
    async with waiting_for("the store"):
        async with recorder.open():
            caller = asyncio.create_task(recorder.record([recorded(ONE), recorded(TWO)]))
            await store.asked.wait()
            await cancelled(caller)
            assert recorder.keeps(TWO.run.run_id, TWO.turn)
            assert not recorder.keeps(TWO.run.run_id, TWO.turn + 1)
            kept = asyncio.create_task(recorder.kept(TWO.run.run_id, TWO.turn))
            await asyncio.sleep(0)
        assert await kept == TWO
        assert not recorder.keeps(TWO.run.run_id, TWO.turn)
        assert await recorder.kept(TWO.run.run_id, TWO.turn) is None
