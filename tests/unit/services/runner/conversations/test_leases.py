"""The lease book: it claims leases only for an owner that the store knows to be alive."""

import asyncio

import pytest

from socratic_bench.adapters.stores.memory.leases import MemoryLeases
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.waits import Waits
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.stores.leases import CallEnd, Lease, LeaseKey, ModelInHand
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.leases import heartbeat
from socratic_runner.leases.book import LeaseBook
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
        self.judged = []
        """Whether each claim might judge the silence of others."""

        self.overdue = []
        """What each heartbeat said."""

    async def take_leases(self, leases, owner, *, may_judge=True):
        self.log.append("take")
        self.asked.set()
        if self.away:
            raise StoreUnavailable("away")
        self.judged.append(may_judge)
        return await super().take_leases(leases, owner, may_judge=may_judge)

    async def heartbeat(self, owner, in_hand, troubles=(), *, overdue=False):
        self.log.append(("beat", *in_hand))
        self.overdue.append(overdue)
        await super().heartbeat(owner, in_hand, troubles, overdue=overdue)

    async def leave(self, owner):
        self.log.append("leave")
        await super().leave(owner)


def book_of(store, draining=None):
    return LeaseBook(
        store, "me", Waits(), draining or asyncio.Event(), Troubles(UNOBSERVED, tell_the_log)
    )


async def test_two_books_of_a_process_or_of_its_forks_make_no_id_twice():
    books = [book_of(LoggedLeases()) for _ in range(2)]
    assert len({book.new_id() for book in books for _ in range(3)}) == 6


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


@pytest.fixture
def time(monkeypatch):
    """The time of the loop as the heartbeat sees it; a test moves it."""
    seconds = [1_000.0]
    monkeypatch.setattr(heartbeat, "_now", lambda: seconds[0])
    return seconds


async def beat_for(book, time, seconds, every=3.0):
    """Send heartbeats for so long."""
    for _ in range(round(seconds / every)):
        time[0] += every
        await book.heartbeat._beat()


async def test_the_silence_of_others_is_judged_after_hearing_from_the_store_for_long(time):
    store = LoggedLeases()
    book = book_of(store)
    async with book.open():
        await book.take([LEASE])
        await beat_for(book, time, 12)
        await book.take([LEASE])
        await beat_for(book, time, 3)
        await book.take([LEASE])
    assert store.judged == [False, False, True]


@pytest.mark.parametrize("gap", [7.0, 60.0])
async def test_after_a_freeze_or_an_outage_the_silence_of_others_proves_nothing(time, gap):
    store = LoggedLeases()
    book = book_of(store)
    async with book.open():
        await book.take([LEASE])
        await beat_for(book, time, 30)
        assert book.heartbeat.may_judge
        time[0] += gap
        assert not book.heartbeat.may_judge
        await beat_for(book, time, 12)
        assert not book.heartbeat.may_judge
        await beat_for(book, time, 6)
        assert book.heartbeat.may_judge


async def test_an_owner_is_overdue_from_before_the_end_of_a_lease_until_its_outcome_is_stored(
    time, monkeypatch
):
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: time[0])
    store = LoggedLeases()
    book = book_of(store)
    long = LEASE._replace(seconds=150.0)
    async with book.open():
        await book.take([long])
        await beat_for(book, time, 120)
        assert not any(store.overdue)
        await beat_for(book, time, 60)
        assert all(store.overdue[-15:])
        await book.end_calls([CallEnd(long.key, billed=False)])
        await beat_for(book, time, 3)
        assert not store.overdue[-1]


async def test_a_lease_that_was_given_back_makes_no_owner_overdue(time):
    store = LoggedLeases()
    book = book_of(store)
    async with book.open():
        await book.take([LEASE])
        await book.give_back([LEASE.key])
        with pytest.raises(RuntimeError), book.held.calling(LEASE.key):
            raise RuntimeError
        await beat_for(book, time, 60)
    assert not any(store.overdue)


async def test_a_store_that_answers_slowly_hears_of_a_living_owner(monkeypatch):
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)
    beaten = asyncio.Event()

    class SlowLeases(LoggedLeases):
        async def heartbeat(self, owner, in_hand, troubles=(), *, overdue=False):
            await asyncio.sleep(5 * heartbeat.BEAT_SECONDS)
            await super().heartbeat(owner, in_hand, troubles, overdue=overdue)
            beaten.set()

    book = book_of(SlowLeases())
    async with waiting_for("a heartbeat"), book.open():
        with book.heartbeat.in_hand([ModelInHand("exp", "a/b")]):
            await beaten.wait()
