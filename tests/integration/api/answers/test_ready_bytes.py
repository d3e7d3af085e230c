"""Answers that are made once for each revision of the store."""

from __future__ import annotations

import asyncio

import pytest

from socratic_api.answers.ready_bytes import ReadyBytes
from tests.waiting import waiting_for


class Kitchen:
    """A store with a revision, and a body that counts how often it was made."""

    def __init__(self) -> None:
        self.revision_now = 1
        self.asked = 0
        self.made = 0
        self.busy = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def revision(self) -> str:
        self.asked += 1
        return str(self.revision_now)

    async def make(self) -> bytes:
        self.made += 1
        self.busy.set()
        await self.open.wait()
        return b"made of revision %d" % self.revision_now


def cache(kitchen: Kitchen, *, freshness: float = 0.0, capacity: int = 64) -> ReadyBytes:
    return ReadyBytes(kitchen.revision, freshness, timeout=5, capacity=capacity)


async def test_a_hundred_requests_at_once_make_the_body_once():
    kitchen = Kitchen()
    kitchen.open.clear()
    ready = cache(kitchen)

    waiting = [asyncio.create_task(ready.get("a", kitchen.make)) for _ in range(100)]
    await kitchen.busy.wait()
    kitchen.open.set()
    bodies = await asyncio.gather(*waiting)

    assert {body.plain for body in bodies} == {b"made of revision 1"}
    assert (kitchen.asked, kitchen.made) == (1, 1)


async def test_a_fresh_body_is_served_without_asking_the_store():
    kitchen = Kitchen()
    ready = cache(kitchen, freshness=60)

    for _ in range(10):
        await ready.get("a", kitchen.make)

    assert (kitchen.asked, kitchen.made) == (1, 1)


async def test_an_expired_body_is_made_anew_only_if_the_store_has_changed():
    kitchen = Kitchen()
    ready = cache(kitchen)
    first = await ready.get("a", kitchen.make)
    _expire(ready)
    same = await ready.get("a", kitchen.make)
    kitchen.revision_now = 2
    _expire(ready)
    other = await ready.get("a", kitchen.make)

    assert same is first
    assert other.plain == b"made of revision 2"
    assert other.etag != first.etag
    assert (kitchen.asked, kitchen.made) == (3, 2)


async def test_a_request_that_is_cancelled_does_not_take_the_body_from_the_others():
    kitchen = Kitchen()
    kitchen.open.clear()
    ready = cache(kitchen)
    gone = asyncio.create_task(ready.get("a", kitchen.make))
    stays = asyncio.create_task(ready.get("a", kitchen.make))
    await kitchen.busy.wait()

    gone.cancel()
    kitchen.open.set()

    assert (await stays).plain == b"made of revision 1"
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_a_body_that_takes_longer_than_a_request_waits_is_there_for_the_next_one():
    kitchen = Kitchen()
    kitchen.open.clear()
    ready = ReadyBytes(kitchen.revision, 60, timeout=0.01)

    with pytest.raises(TimeoutError):
        await ready.get("a", kitchen.make)
    kitchen.open.set()
    ready.timeout = 5

    assert (await ready.get("a", kitchen.make)).plain == b"made of revision 1"
    assert kitchen.made == 1


async def test_a_failure_is_not_kept():
    kitchen = Kitchen()
    ready = cache(kitchen, freshness=60)

    async def fail() -> bytes:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await ready.get("a", fail)

    assert (await ready.get("a", kitchen.make)).plain == b"made of revision 1"


async def test_the_cache_is_bounded_and_the_least_used_goes_first():
    kitchen = Kitchen()
    ready = cache(kitchen, freshness=60, capacity=2)

    for key in ("a", "b", "a", "c", "a"):
        await ready.get(key, kitchen.make)
    assert kitchen.made == 3

    await ready.get("b", kitchen.make)
    assert kitchen.made == 4


async def test_closing_ends_a_refresh_in_hand():
    kitchen = Kitchen()
    kitchen.open.clear()
    ready = cache(kitchen)
    waiting = asyncio.create_task(ready.get("a", kitchen.make))
    await kitchen.busy.wait()

    await ready.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting


def _expire(ready: ReadyBytes) -> None:
    for entry in ready._entries.values():
        entry.fresh_until = 0.0


async def test_an_older_body_is_served_while_a_new_one_takes_long():
    kitchen = Kitchen()
    bytes_ready = cache(kitchen)
    assert (await bytes_ready.get("a", kitchen.make)).plain == b"made of revision 1"
    kitchen.revision_now = 2
    kitchen.open.clear()

    async with waiting_for("the older body, then the new one"):
        assert (await bytes_ready.get("a", kitchen.make)).plain == b"made of revision 1"
        kitchen.open.set()
        while (await bytes_ready.get("a", kitchen.make)).plain != b"made of revision 2":
            pass
    await bytes_ready.close()


async def test_one_body_is_made_at_a_time_and_none_keeps_a_lasting_one_out():
    kitchen = Kitchen()
    bytes_ready = ReadyBytes(kitchen.revision, 60, timeout=60, lasting={"kept"}, capacity=3)
    await bytes_ready.get("kept", kitchen.make)
    kitchen.open.clear()

    asked = [asyncio.create_task(bytes_ready.get(f"{n}", kitchen.make)) for n in range(100)]
    async with waiting_for("a hundred bodies"):
        kitchen.busy.clear()
        await kitchen.busy.wait()
        assert kitchen.made == 1 + 1
        assert bytes_ready.fresh("kept") is not None
        kitchen.open.set()
        await asyncio.gather(*asked)
    assert bytes_ready.fresh("kept") is not None
    assert sum(bytes_ready.fresh(f"{n}") is not None for n in range(100)) <= 3


async def test_the_cache_is_bounded_in_bytes():
    kitchen = Kitchen()

    async def make() -> bytes:
        return b"x" * 600

    bytes_ready = ReadyBytes(kitchen.revision, 60, timeout=5, capacity_bytes=2000)
    for number in range(10):
        await bytes_ready.get(f"{number}", make)

    kept = [number for number in range(10) if bytes_ready.fresh(f"{number}") is not None]
    assert kept == [7, 8, 9]
