"""Wires the judge's parts together."""

from __future__ import annotations

from socratic_bench.consuming.dispatch import BatchDispatcher, Dispatcher
from socratic_bench.consuming.publication import Publish
from socratic_bench.consuming.queues import JUDGE_RESPONSE_RECORDED
from socratic_bench.consuming.worker import Intake, Observer, Worker
from socratic_bench.events.event_types import ResponseRecorded
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_judge.handlers import ResponseRecordedHandler
from socratic_judge.settings import JudgeSettings


def judge_dispatcher(publish: Publish, clock: Clock) -> BatchDispatcher:
    """Return the dispatcher that scores recorded responses and gives their scores to `publish`."""
    return BatchDispatcher(publish, Dispatcher(ResponseRecordedHandler(clock), ResponseRecorded))


def judge_worker(
    broker: Broker, clock: Clock, settings: JudgeSettings, *, observer: Observer | None = None
) -> Worker:
    """Return the worker that scores recorded responses."""
    dispatcher = judge_dispatcher(broker.publish, clock)
    batch = settings.judge_batch
    intake = Intake(batch=batch, prefetch=2 * batch)
    return Worker(broker, JUDGE_RESPONSE_RECORDED, dispatcher, intake, observer=observer)
