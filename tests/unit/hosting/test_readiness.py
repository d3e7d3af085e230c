"""Ready: started, not draining, and everything that is needed answers in time."""

import asyncio

import pytest
from structlog.testing import capture_logs

from socratic_bench.errors import BrokerUnavailable, StoreBroken, StoreUnavailable
from socratic_bench.hosting.http.readiness import Readiness


async def answers():
    return 7


async def hangs():
    await asyncio.Event().wait()


def refuses(error):
    async def refuse():
        raise error

    return refuse


async def test_it_is_ready_from_when_it_has_started_until_it_drains():
    readiness = Readiness({"store": answers})
    assert await readiness.problem() == "the service is starting"
    readiness.start()
    assert await readiness.problem() is None
    readiness.drain()
    assert await readiness.problem() == "the service is draining"


@pytest.mark.parametrize(
    "check",
    [
        refuses(BrokerUnavailable("amqp://10.0.0.7:5672 refused the connection")),
        refuses(StoreBroken("/secret/path: disk full")),
        hangs,
    ],
)
async def test_it_is_not_ready_while_something_it_needs_does_not_answer(log, check):
    readiness = Readiness({"store": answers, "broker": check}, deadline=0.05)
    readiness.start()
    assert await readiness.problem() == "the broker does not answer"
    assert log.lines[0]["missing"] == "broker"


async def test_it_does_not_ask_before_it_has_started():
    def never():
        raise AssertionError("nothing is to be asked while starting")

    assert await Readiness({"store": never}).problem() == "the service is starting"


async def test_the_log_says_once_why_it_is_not_ready_and_again_when_the_reason_changes():
    errors = [
        *[StoreUnavailable("full")] * 3,
        StoreUnavailable("gone"),
        None,
        StoreUnavailable("gone"),
    ]

    async def check():
        if error := errors.pop(0):
            raise error

    readiness = Readiness({"store": check})
    readiness.start()
    with capture_logs() as told:
        while errors:
            await readiness.problem()
    loud = [line["reason"] for line in told if line["log_level"] == "warning"]
    assert loud == ["full", "gone", "gone"]
