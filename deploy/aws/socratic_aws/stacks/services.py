"""What each service consumes, publishes and needs, and how its function is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from socratic_bench.consuming.queues import (
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
)
from socratic_bench.ports.broker import WorkQueue

VISIBILITY_FACTOR: Final = 6
"""A message stays invisible for so many timeouts of its function: AWS retries throttled batches."""


@dataclass(frozen=True, slots=True)
class ConsumedQueue:
    """A queue, and how its messages reach a function."""

    queue: WorkQueue
    batch: int
    """The most messages of an invocation; each holds up to `queue.batch` events."""

    window: int
    """Seconds that AWS may wait for a batch to fill."""

    concurrency: int
    """The most invocations at a time; at least 2."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service on AWS."""

    name: str
    timeout: int
    """Seconds that an invocation may take."""

    memory: int
    """MB; the share of a processor grows with it."""

    consumes: tuple[ConsumedQueue, ...] = ()
    publishes: tuple[WorkQueue, ...] = ()
    entry_point: str = "lambda_function"
    """The module with the handler."""

    package: str = ""
    """The package with that module, where it is not the service's own."""

    announces: bool = False
    """Whether it publishes the broadcasts."""

    store: str = ""
    """Whether it may `read` or `write` the store; empty for neither."""

    @property
    def of_package(self) -> str:
        """The name of the package, which is that of the service whose code it is."""
        return self.package or self.name


# A message holds up to 25 runs of one model. One message an invocation: a slow model holds the
# invocations that it has, and none of another model.
RUNNER: Final = Service(
    "runner",
    timeout=300,
    memory=512,
    consumes=(ConsumedQueue(RUNNER_RUN_REQUESTED, batch=1, window=0, concurrency=10),),
    publishes=(JUDGE_RESPONSE_RECORDED, CURATOR_RUN_FAILED),
    store="write",
)
JUDGE: Final = Service(
    "judge",
    timeout=60,
    memory=512,
    consumes=(ConsumedQueue(JUDGE_RESPONSE_RECORDED, batch=10, window=0, concurrency=5),),
    publishes=(CURATOR_RESPONSE_SCORED,),
)
# A fold rewrites every cell that it touches: few large ones are cheap.
CURATOR: Final = Service(
    "curator",
    timeout=60,
    memory=512,
    consumes=(
        ConsumedQueue(CURATOR_RESPONSE_SCORED, batch=10, window=1, concurrency=2),
        ConsumedQueue(CURATOR_RUN_FAILED, batch=10, window=1, concurrency=2),
    ),
    announces=True,
    store="write",
)
SCHEDULER: Final = Service(
    "scheduler",
    timeout=300,
    memory=512,
    publishes=(
        RUNNER_RUN_REQUESTED,
        JUDGE_RESPONSE_RECORDED,
        CURATOR_RESPONSE_SCORED,
        CURATOR_RUN_FAILED,
    ),
    announces=True,
    entry_point="scheduler_function",
    package="curator",
    store="write",
)
API: Final = Service("api", timeout=29, memory=512, store="read")

STACKED: Final[Mapping[str, tuple[Service, ...]]] = {
    "runner": (RUNNER,),
    "judge": (JUDGE,),
    "curator": (CURATOR, SCHEDULER),
    "api": (API,),
}
"""The functions of each stack: a stack holds those with the same code, which deploy together."""

PORTS: Final = {"runner": 9101, "judge": 9102, "curator": 9103, "api": 8000}
"""The port of each service in its image."""

LIVE: Final = "live"
"""The alias of a function that everything calls. A rollback points it to an earlier version."""

RELEASE: Final = "SOCRATIC_RELEASE"
"""The variable by which a function, and each version of it, names its release."""

CONFIG: Final = "artifacts/config.json"
"""The key of the configuration that is planned each week."""

CONSUMERS: Final = {
    consumption.queue.name: service
    for service in (RUNNER, JUDGE, CURATOR)
    for consumption in service.consumes
}
"""The service that consumes each queue, by the queue's name."""


def visibility_seconds(queue: WorkQueue) -> int:
    """Return for how long a received message of a queue stays invisible to others."""
    return VISIBILITY_FACTOR * CONSUMERS[queue.name].timeout
