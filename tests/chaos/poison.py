"""Messages that no handler can handle; one of them can be repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import aio_pika
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import DeliveryError

from socratic_bench.adapters.brokers.rabbitmq import topology
from socratic_bench.consuming.queues import (
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.events.codec import encode
from socratic_bench.events.event_types import ResponseRecorded, RunRequested
from socratic_bench.ports.broker import WorkQueue
from socratic_bench.scoring.exchange import Status
from tests.waiting import PATIENCE, until

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@dataclass(frozen=True)
class Poison:
    """A message that has to end among the dead letters of a queue."""

    id: str
    queue: WorkQueue
    body: bytes
    reason: str
    """What the reason of its dead letter has to say."""


def poison(group: str, unregistered: Experiment) -> list[Poison]:
    """Poison of every kind; that of an unregistered experiment can be repaired."""
    run = Run(
        run_id=run_id("exp-poison", group, "s", 1),
        experiment_id="exp-poison",
        model_id=group,
        scenario_id="s",
        dimension="student",
        repeat=1,
    )
    recorded = Response(
        run=run,
        turn=1,
        last_turn=True,
        profile="never-registered",
        student_message="?",
        text="Why?",
        status=Status.OK,
        recorded_at=NOW,
    )
    requested = RunRequested.of(next(unregistered.runs()), source="chaos", time=NOW)
    unknown_profile = ResponseRecorded.of(recorded, source="chaos")
    return [
        Poison("no-json", RUNNER_RUN_REQUESTED, b"{", "not an event"),
        Poison(requested.id, RUNNER_RUN_REQUESTED, encode(requested), "not in the store"),
        Poison("wrong-type", JUDGE_RESPONSE_RECORDED, encode(requested), "takes no"),
        Poison(
            unknown_profile.id, JUDGE_RESPONSE_RECORDED, encode(unknown_profile), "never-registered"
        ),
        Poison("no-text", CURATOR_RESPONSE_SCORED, b"\xff\xfe", "not an event"),
        Poison("empty", CURATOR_RUN_FAILED, b"", "not an event"),
    ]


async def publish(url: str, doses: Sequence[Poison], group: str) -> None:
    """Put poison into its queues, past all checks of our publishers."""
    async with (
        await aio_pika.connect(url, timeout=PATIENCE) as connection,
        connection.channel(on_return_raises=True) as channel,
    ):
        for dose in doses:
            message = aio_pika.Message(
                dose.body,
                message_id=dose.id,
                type=dose.queue.event_type,
                headers={topology.GROUP_HEADER: group},
                delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            )
            await until(
                partial(_routed, channel, dose.queue, message), bool, f"a queue for {dose.id}"
            )


async def _routed(channel: AbstractChannel, queue: WorkQueue, message: aio_pika.Message) -> bool:
    """Publish a message; returns False if no queue took it.

    Runners that were just killed have not yet declared the queues that an accident deleted.
    """
    name = topology.group_queues_exchange(queue.name) if queue.separate_groups else ""
    exchange = await channel.get_exchange(name, ensure=False) if name else channel.default_exchange
    try:
        await exchange.publish(message, routing_key="" if name else queue.name)
    except DeliveryError:
        return False
    return True
