"""A response is let go of only where there is no other way."""

import asyncio

import pytest

from socratic_bench.consuming.retry_policy import RetryPolicy
from socratic_bench.errors import StoreBroken, StoreUnavailable
from socratic_runner.recording import PatientRecord
from tests.waiting import waiting_for

AT_ONCE = RetryPolicy(draw=lambda: 0.0)
SLOWLY = RetryPolicy(first_delay=3600.0, longest_delay=3600.0, draw=lambda: 1.0)


class Store:
    """Refuses as often as it was told to."""

    def __init__(self, error, times) -> None:
        self.error = error
        self.left = times
        self.asked = asyncio.Event()

    async def record(self, responses):
        self.asked.set()
        if self.left:
            self.left -= 1
            raise self.error
        return [f"stored {response}" for response in responses]


async def test_it_tries_until_the_store_is_back():
    record = PatientRecord(Store(StoreUnavailable("away"), 500), AT_ONCE)
    assert await record(["a", "b"]) == ["stored a", "stored b"]


async def test_a_broken_store_is_not_waited_for():
    with pytest.raises(StoreBroken):
        await PatientRecord(Store(StoreBroken("disk full"), 1), AT_ONCE)(["a"])


@pytest.mark.parametrize("times", [1, 2])
async def test_given_up_it_tries_once_more_and_waits_no_longer(times):
    store = Store(StoreUnavailable("away"), times)
    record = PatientRecord(store, SLOWLY)
    async with waiting_for("the last try"):
        storing = asyncio.create_task(record(["a"]))
        await store.asked.wait()
        record.give_up()
        if times == 1:
            assert await storing == ["stored a"]
        else:
            with pytest.raises(StoreUnavailable):
                await storing
