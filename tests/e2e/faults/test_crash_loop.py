"""A response that ends every judge that scores it, among many good ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from socratic_bench.addresses import open_broker
from socratic_bench.consuming.queues import (
    BROADCASTS,
    CURATOR_RESPONSE_SCORED,
    JUDGE_RESPONSE_RECORDED,
    WORK_QUEUES,
)
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.events.codec import decode, to_message
from socratic_bench.events.event_types import ResponseRecorded, ResponseScored
from socratic_bench.ports.broker import SUSPECT_AFTER, Broker, ended_alone
from socratic_bench.scoring.exchange import Status
from tests.e2e.faults.crashing_judge import EXIT_CODE, MARKER
from tests.e2e.service_processes import started
from tests.lengths import at_length
from tests.servers import rabbitmq
from tests.waiting import until, waiting_for

GOOD = at_length(500, 2_000)
POISON = GOOD // 2

pytestmark = pytest.mark.connected


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with rabbitmq.namespace() as address:
        yield address


@pytest.fixture
async def broker(url: str) -> AsyncIterator[Broker]:
    opened = open_broker(url)
    await opened.declare(WORK_QUEUES, BROADCASTS)
    yield opened
    await opened.close()


def id_of(number: int) -> str:
    return run_id("exp-crash", "vendor/model", "scenario", number + 1)


def recorded(number: int) -> ResponseRecorded:
    run = Run(
        run_id=id_of(number),
        experiment_id="exp-crash",
        model_id="vendor/model",
        scenario_id="scenario",
        dimension="student",
        repeat=number + 1,
    )
    response = Response(
        run=run,
        turn=1,
        last_turn=True,
        profile="socratic-v1",
        student_message="Why?",
        text=MARKER if number == POISON else "What might you consider?",
        status=Status.OK,
        recorded_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    return ResponseRecorded.of(response, source="test")


async def supervise(url: str) -> int:
    """Start a judge, and another whenever one has ended; returns how many ended."""
    ended = 0
    try:
        while True:
            async with started(
                "judge", {"SOCRATIC_BROKER_URL": url}, module="tests.e2e.faults.crashing_judge"
            ) as judge:
                assert await judge.ended() == EXIT_CODE, judge.text
                ended += 1
    except asyncio.CancelledError:
        return ended


async def scored_runs(broker: Broker, wanted: int) -> set[str]:
    """The runs of the scores that judges published, until they are those of so many runs."""
    runs: set[str] = set()
    async with broker.consume(CURATOR_RESPONSE_SCORED.name, prefetch=2_000) as consumer:
        while len(runs) < wanted:
            deliveries = await consumer.receive(1_000)
            for delivery in deliveries:
                event = decode(delivery.message.body)
                assert isinstance(event, ResponseScored)
                runs.add(event.data.run.run_id)
            await consumer.ack(deliveries)
    return runs


async def the_dead(broker: Broker) -> list[tuple[str, str]]:
    """The id and the reason of every dead letter."""
    return [
        (letter.message.id, letter.reason)
        for queue in WORK_QUEUES
        for letter in await broker.dead_letters(queue.name)
    ]


async def left(broker: Broker) -> int:
    """How many dead letters are missing, and messages too many."""
    waiting = await broker.depth(JUDGE_RESPONSE_RECORDED.name)
    dead = await broker.dead_letter_depth(JUDGE_RESPONSE_RECORDED.name)
    return (waiting or 0) + (dead == 0)


@pytest.mark.two_lengths
async def test_a_response_that_ends_every_judge_is_the_only_dead_letter_and_all_others_are_scored(
    url: str, broker: Broker
) -> None:
    events = [recorded(number) for number in range(GOOD + 1)]
    await broker.publish([to_message(event) for event in events])
    supervising = asyncio.create_task(supervise(url))
    try:
        async with waiting_for("every good score"):
            runs = await scored_runs(broker, GOOD)
        await until(lambda: left(broker), lambda waiting: waiting == 0, "nothing to be left")
    finally:
        supervising.cancel()
        await asyncio.wait({supervising})
    dead = await the_dead(broker)
    good = {event.data.run.run_id for event in events} - {id_of(POISON)}
    assert dead == [(events[POISON].id, ended_alone(SUSPECT_AFTER))]
    assert runs == good
    assert supervising.result() == 2 * SUSPECT_AFTER
