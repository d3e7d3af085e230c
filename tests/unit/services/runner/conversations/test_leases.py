"""The lease book: it claims leases only for an owner that the store knows to be alive."""

import asyncio

import pytest

from socratic_bench.adapters.memory.store.leases import MemoryLeases
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.waits import Waits
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.stores.leases import Lease, LeaseAnswer, LeaseKey, ModelInHand
from socratic_runner.conversations import heartbeat
from socratic_runner.conversations.call_observing import UNOBSERVED
from socratic_runner.conversations.leases import LeaseBook
from socratic_runner.troubles import Troubles, tell_the_log
from tests.waiting import waiting_for

LEASE = Lease(LeaseKey("exp", "run", 1, "lease"), 30.0)


class LoggedLeases(MemoryLeases):
    """Records the calls to it; it can be unavailable."""

    def __init__(self, *, away=False) -> None:
        super().__init__()
        self.away = away
        self.asked = asyncio.Event()
        self.log = []

    async def take_leases(self, leases, owner):
        self.log.append("take")
        self.asked.set()
        if self.away:
            raise StoreUnavailable("away")
        return await super().take_leases(leases, owner)

    async def heartbeat(self, owner, in_hand, troubles=()):
        self.log.append(("beat", *in_hand))
        await super().heartbeat(owner, in_hand, troubles)

    async def leave(self, owner):
        self.log.append("leave")
        await super().leave(owner)


def book_of(store, draining=None):
    return LeaseBook(
        store, "me", Waits(), draining or asyncio.Event(), Troubles(UNOBSERVED, tell_the_log)
    )


async def test_no_lease_is_waited_for_once_the_runner_drains(monkeypatch):
    monkeypatch.setattr(RetryPolicy, "delay", lambda *_: 3600.0)
    store, draining = LoggedLeases(away=True), asyncio.Event()
    book = book_of(store, draining)
    async with waiting_for("the refusal"), book.open():
        taking = asyncio.create_task(book.take([LEASE]))
        await store.asked.wait()
        draining.set()
        with pytest.raises(StoreUnavailable):
            await taking


async def test_a_lease_is_taken_only_by_an_owner_that_the_store_knows_to_be_alive():
    store = LoggedLeases()
    book = book_of(store)
    async with book.open():
        with book.heartbeat.in_hand([ModelInHand("exp", "a/b"), ModelInHand("exp", "a/b")]):
            assert await book.take([LEASE]) == [LeaseAnswer.GRANTED]
            await book.take([LEASE])
            assert book.heartbeat.certain
    beat = ("beat", ModelInHand("exp", "a/b"))
    assert store.log == [beat, "take", "take", "leave"]


async def test_after_a_freeze_no_call_begins_until_the_next_heartbeat(monkeypatch):
    store = LoggedLeases()
    book = book_of(store)
    async with book.open():
        await book.take([LEASE])
        now = heartbeat._now()
        assert book.may_begin(LEASE, now)
        monkeypatch.setattr(heartbeat, "_now", lambda: now + 60)
        assert not book.may_begin(LEASE, now)
        await book.take([LEASE])
        assert book.may_begin(LEASE, now)
    assert store.log == [("beat",), "take", ("beat",), "take", "leave"]
