"""Tasks that outlive their request and end with the application: submissions and deletions.

The removal of many rows takes longer than a request, so it continues in a task of the application.
The curator removes what a task of an ended process left.

A plan may take longer than a request, so it continues in a task of the application. The reconciler
completes a plan that ends with this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import structlog
from starlette.exceptions import HTTPException

from socratic_api.capabilities import Capabilities, Prepare
from socratic_api.http.problems import RETRY_SECONDS, Conflict
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import BrokerError, InvalidInput, SocraticBenchError
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.estimate import Prospect, look_into
from socratic_bench.planning.plan import PlanCounts, PlanStore, remove_requests, remove_rows, resume
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import Experiments

if TYPE_CHECKING:
    from socratic_bench.planning.config_file.config import BenchmarkConfig

CLOSE_SECONDS: Final = 5.0
"""Seconds that tasks may take to end."""

log = structlog.get_logger(__name__)


class Background:
    """Owns such tasks, and logs the errors that no request reports."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        """Carry out `work` in a task."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel the tasks, and wait for their end."""
        await self._end({*self._tasks})

    async def end(self, task: asyncio.Task[None]) -> None:
        """Cancel a task, and wait for its end."""
        await self._end({task})

    async def _end(self, tasks: set[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, SocraticBenchError | TimeoutError):
            log.warning("not finished", work=task.get_name(), reason=str(error))
        else:
            log.error("failed", work=task.get_name(), exc_info=error)


REMOVED_WITHIN: Final = 2.0
"""Seconds that a request waits for the rows to be gone."""


@dataclass(slots=True)
class Deletion:
    """One deletion on its way."""

    experiment_id: str
    rows: int = 0
    """The rows removed so far."""

    done: bool = False


class Deletions:
    """Deletes experiments, each in a task of its own."""

    def __init__(self, store: Experiments, prepare: Prepare, capabilities: Capabilities) -> None:
        self._store = store
        self._prepare = prepare
        self._capabilities = capabilities
        self._running: dict[str, tuple[Deletion, asyncio.Task[None]]] = {}
        self._background = Background()

    async def delete(self, experiment_id: str, experiment: Experiment | None) -> Deletion:
        """Delete an experiment; None for one that is deleted, whose rows may remain.

        Returns once its rows are gone, or their removal takes long. Raises StoreError.
        """
        await self._prepare()
        if experiment is not None:
            await self._store.change_state(experiment_id, ExperimentState.DELETED)
        if experiment_id not in self._running:
            deletion = Deletion(experiment_id)
            work = self._remove(deletion, experiment)
            task = self._background.start(work, f"deletion of {experiment_id}")
            self._running[experiment_id] = deletion, task
            task.add_done_callback(lambda _: self._running.pop(experiment_id))
        deletion, task = self._running[experiment_id]
        await asyncio.wait({task}, timeout=REMOVED_WITHIN)
        if task.done():
            task.result()
        elif not self._capabilities.outlives_answers:
            await self._background.end(task)
        return deletion

    async def close(self) -> None:
        """End the removal of rows; the curator continues it."""
        await self._background.close()

    async def _remove(self, deletion: Deletion, experiment: Experiment | None) -> None:
        async for rows in remove_rows(self._store, deletion.experiment_id):
            deletion.rows += rows
        broker = self._capabilities.broker
        if experiment is not None and experiment.submitted and broker is not None:
            try:
                await remove_requests(broker, self._store, experiment)
            except BrokerError as error:
                # Runners drop such requests.
                log.warning("requests stay", reason=str(error))
        deletion.done = True
        log.info("deleted", correlation_id=deletion.experiment_id, rows=deletion.rows)


SOURCE: Final = "api"
LARGEST_CONFIG: Final = 1_000_000
"""Bytes of a configuration."""

PLANNED_AT_ONCE: Final = 4
"""The most experiments planned at once; others are refused."""

READING_WAITS: Final = 8
"""The most configurations that wait to be read; others are refused."""

REGISTERED_WITHIN: Final = 10.0
"""Seconds that a request waits for its experiment to stand in the store."""

PLANNED_WITHIN: Final = 2.0
"""Seconds that it waits after that for the end of planning."""

PLANNED_IN_FUNCTION: Final = 8.0
"""The same where planning ends with the answer: the reconciler would go on minutes later."""

_NAME: Final = "configuration"
_NOT_BEGUN: Final = (
    "no run was requested: it took too long to look for answers that earlier experiments paid for; "
    "the same request looks again, and the command takes its time: socratic-bench submit CONFIG"
)


@dataclass(slots=True)
class Plan:
    """One submission on its way."""

    experiment: Experiment
    retry_failed: bool
    fresh: bool
    prospect: Prospect | None = None
    """The remaining work; None until it is known."""

    counts: PlanCounts | None = None
    """The requested runs; None until planning has ended."""

    registered: asyncio.Event = field(default_factory=asyncio.Event)

    def is_repeated_by(self, other: Plan) -> bool:
        """Whether the other asks for the same work."""
        return (self.experiment.manifest, self.retry_failed, self.fresh) == (
            other.experiment.manifest,
            other.retry_failed,
            other.fresh,
        )


class Submissions:
    """Plans experiments, each in a task of its own."""

    def __init__(
        self, store: PlanStore, prepare: Prepare, capabilities: Capabilities, clock: Clock
    ) -> None:
        self._store = store
        self._prepare = prepare
        self._capabilities = capabilities
        self._clock = clock
        self._reading = asyncio.Lock()
        self._waiting = 0
        self._plans: dict[str, tuple[Plan, asyncio.Task[None]]] = {}
        self._background = Background()

    async def read(self, body: bytes) -> BenchmarkConfig:
        """Read a configuration: a JSON object that names no file.

        Raises InvalidInput, or InvalidConfig with every mistake; HTTPException 503 while many
        others are read.
        """
        if self._waiting >= READING_WAITS:
            raise _busy("many configurations are being read")
        self._waiting += 1
        try:
            # A large one takes seconds: one at a time, in a thread.
            async with self._reading:
                return await asyncio.to_thread(_read, body, self._capabilities.most_runs)
        finally:
            self._waiting -= 1

    async def submit(self, config: BenchmarkConfig, *, retry_failed: bool, fresh: bool) -> Plan:
        """Have the services carry out a benchmark, as `socratic-bench submit` does.

        Returns once planning has ended, or goes on for long. Raises Conflict without a broker,
        ExperimentStopped, StoreError, BrokerError; HTTPException 503 while many others are planned,
        or where the experiment is not in the store in time and no work outlives the answer.
        """
        broker = self._capabilities.require_broker("submit CONFIG")
        plan = Plan(config.experiment(self._clock.now()), retry_failed, fresh)
        plan, task = self._begun(plan, broker)
        registered = asyncio.ensure_future(plan.registered.wait())
        begun: set[asyncio.Future[Any]] = {task, registered}
        await asyncio.wait(begun, timeout=REGISTERED_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        registered.cancel()
        stays = self._capabilities.outlives_answers
        planned_within = PLANNED_WITHIN if stays else PLANNED_IN_FUNCTION
        await asyncio.wait({task}, timeout=planned_within if plan.registered.is_set() else 0)
        if not task.done() and not stays:
            await self._background.end(task)
            if not plan.registered.is_set():
                raise HTTPException(503, _NOT_BEGUN, {"Retry-After": RETRY_SECONDS})
        elif task.done():
            task.result()
        return plan

    async def close(self) -> None:
        """End planning; the reconciler completes it."""
        await self._background.close()

    def _begun(self, plan: Plan, broker: Broker) -> tuple[Plan, asyncio.Task[None]]:
        """Return the task that carries out this plan, and the plan as it goes on."""
        experiment_id = plan.experiment.experiment_id
        if experiment_id in self._plans:
            running, task = self._plans[experiment_id]
            if not running.is_repeated_by(plan):
                raise Conflict(f"{experiment_id} is being planned: send it again in a moment")
            return running, task
        if len(self._plans) >= PLANNED_AT_ONCE:
            raise _busy("many experiments are being planned")
        task = self._background.start(self._carry_out(plan, broker), f"plan of {experiment_id}")
        self._plans[experiment_id] = plan, task
        task.add_done_callback(lambda _: self._plans.pop(experiment_id))
        return plan, task

    async def _carry_out(self, plan: Plan, broker: Broker) -> None:
        await self._prepare()
        await broker.declare(WORK_QUEUES, BROADCASTS)
        experiment = plan.experiment
        plan.prospect = await look_into(
            self._store, experiment, fresh=plan.fresh, adopt=True, retry_failed=plan.retry_failed
        )
        experiment = plan.experiment = await self._store.register(experiment)
        plan.registered.set()

        async def publish(events: Sequence[Event]) -> None:
            await broker.publish([to_message(event) for event in events])

        plan.counts = await resume(
            experiment,
            None,
            self._store,
            publish,
            clock=self._clock,
            source=SOURCE,
            retry_failed=plan.retry_failed,
        )
        log.info(
            "submitted",
            correlation_id=experiment.experiment_id,
            planned=plan.counts.planned,
            requested=plan.counts.requested,
        )


def _read(body: bytes, most_runs: int) -> BenchmarkConfig:
    # Only when asked for: the start of a function should not wait for YAML and every provider.
    from socratic_bench.planning.config_file.config import parse_config  # noqa: PLC0415
    from socratic_bench.planning.model_catalogue import RegisteredModels  # noqa: PLC0415

    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"body: is not UTF-8 text: byte {error.start} is wrong") from None
    if not text.lstrip().startswith("{"):
        raise InvalidInput("body: must be a JSON object, a configuration with `models`")
    config = parse_config(text, name=_NAME, base_folder=None, catalogue=RegisteredModels())
    if config.manifest.planned_runs > most_runs:
        raise InvalidInput(
            f"body: plans {config.manifest.planned_runs:,} runs; at most {most_runs:,} may be "
            "submitted to this API: lower `repeats`, or use `socratic-bench submit`"
        )
    return config


def _busy(why: str) -> HTTPException:
    return HTTPException(503, f"{why}: try again soon", {"Retry-After": RETRY_SECONDS})
