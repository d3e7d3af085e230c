"""A runner on a scripted client, and its published events."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.outcomes import Emit, Work
from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.consuming.waits import Waits
from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.response import Usage
from socratic_bench.domain.scenario import Scenario
from socratic_bench.events.codec import decode, to_message
from socratic_bench.events.event_types import RunFailed, RunRequested
from socratic_bench.ports.models import Reply
from socratic_bench.scoring.exchange import Status
from socratic_runner.bootstrap import runner_dispatcher, runner_worker, unwatched
from socratic_runner.conversations.batching import Batching
from socratic_runner.conversations.call_outcomes import UNOBSERVED, Retries
from socratic_runner.conversations.call_preparation import ALL_TIME, Budgets, CallPreparer
from socratic_runner.conversations.conversation_runner import ConversationRunner
from socratic_runner.conversations.response_grader import EarlierGraders, ResponseGrader
from socratic_runner.experiment_cache import ExperimentCache
from socratic_runner.handling.handler import RunRequestedHandler
from socratic_runner.leases.book import LeaseBook
from socratic_runner.leases.recorder import Recorder
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.model_pool import ModelPool
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles, tell_the_log
from tests.unit.events.examples import TIME
from tests.waiting import waiting_for

MODEL = TutorModel(
    id="scripted/tutor",
    price=Price(input_per_million=Decimal(1), output_per_million=Decimal(2)),
    limits=Limits(timeout_seconds=0.2, run_timeout_seconds=39.8),
)
SCENARIOS = (
    Scenario(id="one", dimension="ambiguous", prompt="Help?"),
    Scenario(id="three", dimension="student", prompt="A?", follow_ups=("B?", "C?")),
)
EXPERIMENT = Experiment(
    manifest=Manifest(models=(MODEL,), scenarios=SCENARIOS, repeats=1), created_at=TIME
)
ONE, THREE = EXPERIMENT.runs()
SETTINGS = RunnerSettings(
    runner_attempts=3,
    runner_patient_attempts=5,
    runner_first_delay=0.001,
    runner_longest_delay=0.002,
)


class ScriptedClient:
    """Answers by its script, and records its calls."""

    concurrency = None
    answers_at_once = False

    def __init__(self, script) -> None:
        self.script = script
        self.asked = []
        self.closed = False

    async def ask(self, question):
        self.asked.append(question)
        answer = self.script(question, len(self.asked))
        if isinstance(answer, Exception):
            raise answer
        return await answer if asyncio.iscoroutine(answer) else answer

    async def close(self):
        self.closed = True


def reply(text="What might you try?", status=Status.OK) -> Reply:
    usage = Usage(visible_output_tokens=10, reasoning_tokens=5, input_tokens=100)
    return Reply(text=text, status=status, usage=usage, latency_ms=3, stop_reason="stop")


class Parts(NamedTuple):
    """The parts of a runner."""

    leases: LeaseBook
    runner: ConversationRunner
    handler: RunRequestedHandler
    pool: ModelPool
    limiters: ConcurrencyLimiters
    draining: asyncio.Event


@asynccontextmanager
async def parts_of_a_runner(
    store, client, *, owner="runner-1", most=10, margin=60.0, window=ALL_TIME
):
    """A runner without a worker."""
    draining, clock, limiters = asyncio.Event(), SystemClock(), ConcurrencyLimiters(most=most)
    pool = ModelPool(lambda _: client, limiters)
    troubles, waits = Troubles(UNOBSERVED, tell_the_log), Waits()
    leases, recorder = LeaseBook(store, owner, waits, draining, troubles), Recorder(store, waits)
    retries = partial(Retries, RetryPolicy(draw=lambda: 0.0))
    preparer = CallPreparer(leases, store, Budgets(store), margin, draining, window)
    runner = ConversationRunner(
        preparer,
        leases,
        recorder,
        clock,
        retries,
        draining,
        UNOBSERVED,
        troubles,
        Batching(store, preparer, clock, UNOBSERVED, troubles),
    )
    grader = ResponseGrader(store, EarlierGraders(store, store), pool, runner)
    handler = RunRequestedHandler(
        store, ExperimentCache(store), pool, runner, grader, clock, busy_delay=1.0
    )
    async with leases.open(), recorder.open():
        yield Parts(leases, runner, handler, pool, limiters, draining)


def requested(run, retry=0):
    return Work(RunRequested.of(run, source="test", time=TIME, retry=retry), 1)


async def outcomes_of(handler, *works):
    """The last word on each piece of work."""
    ends = [each async for batch in handler(works) for each in batch]
    return {each.work: each for each in ends if not isinstance(each, Emit)}


async def carry_out(
    store,
    client,
    *runs,
    owner="runner-1",
    settings=SETTINGS,
    retry=0,
    observer=UNOBSERVED,
    troubles=None,
    watch=unwatched,
):
    """Request runs and return the events the runner publishes for them, in order.

    `client` answers for every model, or is a client for each, or opens one for a model. The runner
    tells `observer` of calls, and `troubles` of failing models.
    """
    if isinstance(client, ScriptedClient):

        def open_client(_model):
            return client
    elif isinstance(client, dict):

        def open_client(model):
            return client[model.id]
    else:
        open_client = client
    broker = MemoryBroker()
    await broker.declare(WORK_QUEUES, BROADCASTS)
    async with (
        waiting_for("the runner"),
        runner_dispatcher(
            broker.publish,
            store,
            SystemClock(),
            open_client,
            settings,
            owner=owner,
            limits=store,
            observer=observer,
            troubles=troubles or Troubles(observer, tell_the_log),
            watch=watch,
        ) as dispatcher,
        asyncio.TaskGroup() as tasks,
    ):
        worker = runner_worker(broker, dispatcher, settings)
        tasks.create_task(worker.run())
        await broker.publish(
            [
                to_message(RunRequested.of(run, source="test", time=TIME, retry=retry))
                for run in runs
            ]
        )
        events = []
        async with (
            broker.consume("judge-response-recorded", prefetch=99) as responses,
            broker.consume("curator-run-failed", prefetch=99) as failures,
        ):
            waiting = {
                tasks.create_task(responses.receive(99)): responses,
                tasks.create_task(failures.receive(99)): failures,
            }
            done = 0
            while done < len(runs):
                ready, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in ready:
                    consumer = waiting.pop(task)
                    deliveries = task.result()
                    await consumer.ack(deliveries)
                    for delivery in deliveries:
                        event = decode(delivery.message.body)
                        events.append(event)
                        done += isinstance(event, RunFailed) or event.data.last_turn
                    waiting[tasks.create_task(consumer.receive(99))] = consumer
            worker.drain()
            for task, consumer in waiting.items():
                consumer.drain()
                await task
    assert await broker.depth(RUNNER_RUN_REQUESTED.name) == 0
    assert await broker.dead_letters(RUNNER_RUN_REQUESTED.name) == []
    await broker.close()
    return events
