"""A reconciler with its broker and its clock."""

from __future__ import annotations

import pytest

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_curator.reconciling.reconciler import Reconciler
from tests.contract.store.facts import MONDAY


class Clock:
    """Wall clock and monotonic clock, wound on by the test."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def now(self):
        return MONDAY

    def __call__(self):
        return self.seconds


@pytest.fixture
async def broker():
    broker = MemoryBroker()
    await broker.declare(WORK_QUEUES, BROADCASTS)
    yield broker
    await broker.close()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def healer(store, broker, clock):
    return Reconciler(store, broker, clock, "curator-1", monotonic=clock)
