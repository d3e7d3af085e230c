"""All workers of a benchmark in one process, for an hour of virtual time.

The broker counts messages. The store in memory needs no threads; a database would cost more than
all the rest.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.brokers.memory.consumer import MemoryConsumer
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.consuming.worker import Worker
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.events.codec import Event, Message, to_message
from socratic_bench.hosting.workers import RunningGroups
from socratic_bench.planning.plan import resume
from socratic_bench.ports.broker import Delivery
from socratic_curator.bootstrap import curator_workers
from socratic_curator.reconciling.reconciler import Reconciler, reconciling
from socratic_curator.settings import CuratorSettings
from socratic_judge.bootstrap import judge_worker
from socratic_judge.settings import JudgeSettings
from socratic_runner.bootstrap import runner_dispatcher, runner_worker, unwatched
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.model_pool import OpenClient
from socratic_runner.models.registry import open_client
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles, tell_the_log
from tests.unit.services.runner.limits.virtual_time import now

HOUR = 3_600.0
START = datetime(2026, 3, 2, tzinfo=UTC)


class VirtualClock:
    """The wall clock, in the time of the running loop."""

    def now(self) -> datetime:
        return START + timedelta(seconds=now())


class CountingBroker(MemoryBroker):
    """Counts published and returned messages.

    It knows no more than RabbitMQ: its depth leaves out the messages in a consumer's hand.
    """

    def __init__(self) -> None:
        super().__init__(max_waiting=1_000_000)
        self.published: Counter[str] = Counter()
        """Messages, by their ids."""

        self.put_back = 0

    @property
    def repeated(self) -> int:
        """How many messages were published that had been published before."""
        return self.published.total() - len(self.published)

    async def publish(self, messages: Sequence[Message]) -> None:
        self.published.update(message.id for message in messages)
        await super().publish(messages)

    @asynccontextmanager
    async def consume(
        self, queue: str, *, prefetch: int, prefetch_per_group: int | None = None
    ) -> AsyncIterator[MemoryConsumer]:
        async with super().consume(
            queue, prefetch=prefetch, prefetch_per_group=prefetch_per_group
        ) as consumer:
            retry = consumer.retry

            async def counting(
                delivery: Delivery, delay: float, reason: str, *, counted: bool = True
            ) -> None:
                self.put_back += 1
                await retry(delivery, delay, reason, counted=counted)

            setattr(consumer, "retry", counting)  # noqa: B010 - in the place of a method
            yield consumer

    async def depth(
        self, queue: str, group: str | None = None, *, groups: Collection[str] = ()
    ) -> int:
        waiting = self._queue(queue)
        return waiting.depth if group is None else waiting.depth_of(group)


@dataclass(slots=True)
class Simulation:
    """The workers' shared parts, and their actions."""

    broker: CountingBroker
    store: MemoryStore
    clock: VirtualClock

    async def plan(self, experiment: Experiment) -> str:
        """Request all runs of an experiment; returns its id."""

        async def publish(events: Sequence[Event]) -> None:
            await self.broker.publish([to_message(event) for event in events])

        await self.store.register(experiment)
        await resume(experiment, experiment.runs(), self.store, publish, clock=self.clock)
        return experiment.experiment_id

    @property
    def extra(self) -> int:
        """Messages that would not have been needed."""
        return self.broker.repeated + self.broker.put_back

    async def dead(self) -> int:
        return sum([await self.broker.dead_letter_depth(queue.name) for queue in WORK_QUEUES])


@asynccontextmanager
async def simulation(
    *, runners: int, curators: int = 2, open_client: OpenClient = open_client
) -> AsyncIterator[Simulation]:
    """So many runners and curators, each with its reconciler, and a judge."""
    async with AsyncExitStack() as ending:
        clock = VirtualClock()
        broker, store = CountingBroker(), MemoryStore(now=clock.now)
        ending.push_async_callback(store.close)
        ending.push_async_callback(broker.close)
        await store.prepare()
        await broker.declare(WORK_QUEUES, BROADCASTS)
        workers: list[Worker] = [judge_worker(broker, clock, JudgeSettings())]
        for number in range(curators):
            workers += curator_workers(broker, store, clock, CuratorSettings())
            healer = Reconciler(store, broker, clock, f"curator-{number}", monotonic=now)
            await ending.enter_async_context(reconciling(healer))
        for number in range(runners):
            settings = RunnerSettings()
            runner = runner_dispatcher(
                broker.publish,
                store,
                clock,
                open_client,
                settings,
                owner=f"runner-{number}",
                limits=store,
                observer=UNOBSERVED,
                troubles=Troubles(UNOBSERVED, tell_the_log),
                watch=unwatched,
            )
            dispatcher = await ending.enter_async_context(runner)
            models = RunningGroups(store)
            workers.append(runner_worker(broker, dispatcher, settings, groups=models))
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(worker.run()) for worker in workers]
            yield Simulation(broker, store, clock)
            for task in running:
                task.cancel()


async def waiting(simulation: Simulation) -> int:
    """The number of requests of runs that no runner has taken yet."""
    return await simulation.broker.depth(RUNNER_RUN_REQUESTED.name)
