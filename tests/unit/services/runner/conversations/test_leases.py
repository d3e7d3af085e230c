"""The lease book: whatever it asks of the store it asks until the store answers."""

import asyncio

import pytest
import structlog

from socratic_bench.consuming.waits import Waits
from socratic_bench.errors import (
    StoreBroken,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)
from socratic_bench.ports.stores.leases import Lease, LeaseAnswer, LeaseKey, ModelInHand
from socratic_runner.conversations import leases as lease_book
from socratic_runner.conversations.leases import LeaseBook, Recorded
from tests.waiting import waiting_for

LEASE = Lease(LeaseKey("exp", "run", 1, "lease"), 30.0)


class Store:
    """Raises `error` so many times, and records its calls."""

    def __init__(self, error=None, times=0) -> None:
        self.error = error
        self.left = times
        self.asked = asyncio.Event()
        self.log = []

    async def _answer(self, what, answer):
        self.log.append(what)
        self.asked.set()
        if self.left:
            self.left -= 1
            raise self.error
        return answer

    async def take_leases(self, claims, owner):
        return await self._answer("take", [LeaseAnswer.GRANTED for _ in claims])

    async def record(self, responses, lease_ids):
        return await self._answer("record", [f"stored {each}" for each in responses])

    async def heartbeat(self, owner, in_hand, troubles=()):
        self.log.append(("beat", *in_hand))

    async def leave(self, owner):
        self.log.append("leave")

    async def leave_others(self, owner):
        self.log.append("alone")


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(lease_book.RetryPolicy, "delay", lambda *_: 0.0)


def book_of(store):
    return LeaseBook(store, "me", Waits(), asyncio.Event())


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreBroken("odd")], ids=repr)
async def test_a_reply_is_kept_until_the_store_takes_it_whatever_the_store_says(error):
    book = book_of(Store(error, 300))
    async with waiting_for("the store"), book.open(alone=False):
        assert await book.record([Recorded("a", LEASE), Recorded("b", LEASE)]) == [
            "stored a",
            "stored b",
        ]


async def test_what_the_store_refuses_is_not_asked_again():
    store = Store(StoreRefused("too large"), 1)
    book = book_of(store)
    async with waiting_for("the store"), book.open(alone=False):
        with pytest.raises(StoreRefused):
            await book.record([Recorded("a", LEASE)])
    assert store.log == ["record"]


@pytest.mark.parametrize("times", [1, 2])
async def test_at_the_end_it_tries_once_more_and_waits_no_longer(times, monkeypatch):
    monkeypatch.setattr(lease_book.RetryPolicy, "delay", lambda *_: 3600.0)
    store = Store(StoreUnavailable("away"), times)
    book = book_of(store)
    async with waiting_for("the last try"):
        async with book.open(alone=False):
            storing = asyncio.create_task(book.record([Recorded("a", LEASE)]))
            await store.asked.wait()
        if times == 1:
            assert await storing == ["stored a"]
        else:
            with pytest.raises(StoreUnavailable):
                await storing


async def test_no_lease_is_waited_for_once_the_runner_drains(monkeypatch):
    monkeypatch.setattr(lease_book.RetryPolicy, "delay", lambda *_: 3600.0)
    store, draining = Store(StoreUnavailable("away"), 99), asyncio.Event()
    book = LeaseBook(store, "me", Waits(), draining)
    async with waiting_for("the refusal"), book.open(alone=False):
        taking = asyncio.create_task(book.take([LEASE]))
        await store.asked.wait()
        draining.set()
        with pytest.raises(StoreUnavailable):
            await taking


@pytest.mark.usefixtures("hurried")
async def test_a_store_that_takes_nothing_is_told_of_loudly_and_known_to_be_waited_for():
    seen = []

    class FullStore(Store):
        async def record(self, responses, lease_ids):
            seen.append(waits.error)
            return await super().record(responses, lease_ids)

    waits = Waits()
    book = LeaseBook(FullStore(StoreNotWritable("disk full"), 2), "me", waits, asyncio.Event())
    with structlog.testing.capture_logs() as lines:
        async with book.open(alone=False):
            await book.record([Recorded("a", LEASE)])
    assert [line["log_level"] for line in lines] == ["critical", "debug"]
    assert waits.error is None


async def test_a_lease_is_taken_only_by_an_owner_that_the_store_knows_to_be_alive():
    store = Store()
    book = book_of(store)
    async with book.open(alone=True):
        with book.in_hand([ModelInHand("exp", "a/b"), ModelInHand("exp", "a/b")]):
            await book.take([LEASE])
            await book.take([LEASE])
            assert book.certain
    beat = ("beat", ModelInHand("exp", "a/b"))
    assert store.log == ["alone", beat, "take", "take", "leave"]


async def test_after_a_freeze_leases_are_uncertain_until_the_next_heartbeat(monkeypatch):
    store = Store()
    book = book_of(store)
    async with book.open(alone=False):
        await book.take([LEASE])
        now = lease_book._now()
        monkeypatch.setattr(lease_book, "_now", lambda: now + 60)
        assert not book.certain
        await book.take([LEASE])
        assert book.certain
    assert store.log == [("beat",), "take", ("beat",), "take", "leave"]
