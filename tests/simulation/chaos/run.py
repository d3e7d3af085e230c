"""One run: a schedule of faults against a benchmark, and what the invariants say of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

import structlog

from tests.simulation.chaos import faults, invariants
from tests.simulation.chaos.chance import drawn_from, now
from tests.simulation.chaos.loop import SimulatedLoop
from tests.simulation.chaos.schedule import Schedule
from tests.simulation.chaos.world import World

Result = TypeVar("Result")
Broken = tuple[tuple[str, str], ...]
"""The invariants that do not hold, each with the reason."""

PATIENCE: Final = 2 * 3_600.0
"""Seconds of quiet in which the experiment has to come to its end."""

AFTERWARDS: Final = 60.0
"""Seconds after the end in which everything still runs."""

STILLNESS: Final = 3 * 3_600.0
"""Seconds after that in which a curator alone watches, and nothing may happen."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run."""

    schedule: Schedule
    broken: Broken
    hours: float
    """Simulated."""

    healing: float
    """Seconds from the last repair to the end of the experiment."""

    cpu: float
    """Seconds."""

    trace: tuple[str, ...]


def run(schedule: Schedule, *, trace: bool = False) -> Outcome:
    """Carry a schedule out; the same schedule always has the same outcome, but for `cpu`."""
    expected, broken_in_quiet = quiet(schedule.shape)
    world = World(
        schedule.seed,
        schedule.shape,
        schedule.pace,
        schedule.is_harmless,
        [] if trace else None,
    )
    began = time.process_time()

    async def whole() -> tuple[Broken, float]:
        await _carry_out(world, schedule)
        return tuple(await invariants.broken(world, expected)), now()

    try:
        broken, seconds = _in_virtual_time(world, whole())
    except Exception as error:  # noqa: BLE001 - the seed that ends like this is worth knowing
        broken, seconds = (("the_run_ends", repr(error)),), 0.0
    end = seconds if world.completed_at is None else world.completed_at
    return Outcome(
        schedule=schedule,
        broken=(*broken_in_quiet, *broken),
        hours=seconds / 3600,
        healing=end - world.calm_since,
        cpu=time.process_time() - began,
        trace=tuple(world.trace or ()),
    )


async def _carry_out(world: World, schedule: Schedule) -> None:
    await world.begin()
    async with asyncio.TaskGroup() as breaking:
        for fault in schedule.faults:
            await asyncio.sleep(max(0.0, fault.at - now()))
            world.note("world", str(fault))
            breaking.create_task(faults.happen(world, fault))
    await world.repair()
    await world.until_complete(PATIENCE)
    await asyncio.sleep(AFTERWARDS)
    still = sum(world.broker.published.values())
    for process in world.all_processes:
        if process is not world.processes["curator-1"]:
            process.drain()
    await asyncio.sleep(STILLNESS)
    if (more := sum(world.broker.published.values()) - still) and world.completed_at is not None:
        world.broken.append(f"{more} messages were published after the end")
    await world.end()


@cache
def quiet(shape: int) -> tuple[bytes, Broken]:
    """Return the cells of a plan without any fault, and the invariants that do not hold even so."""
    schedule = Schedule.quiet(shape)
    world = World(schedule.seed, shape, schedule.pace, is_harmless=True)

    async def whole() -> tuple[bytes, Broken]:
        await _carry_out(world, schedule)
        broken = await invariants.broken(world, None)
        return await invariants.cells(world), tuple((f"quiet: {n}", why) for n, why in broken)

    return _in_virtual_time(world, whole())


def _in_virtual_time(world: World, work: Coroutine[Any, Any, Result]) -> Result:
    loop = asyncio.Runner(loop_factory=lambda: SimulatedLoop(world.hear_of_task))
    with _silence(world), drawn_from(world.seed), loop as runner:
        return runner.run(work)


@contextmanager
def _silence(world: World) -> Iterator[None]:
    """Keep the product's log out of the way, or in the trace if there is one."""
    before = structlog.get_config()
    level = logging.CRITICAL if world.trace is None else logging.DEBUG

    def tell(_logger: object, _method: str, event: MutableMapping[str, Any]) -> str:
        said = " ".join(f"{key}={event[key]}" for key in sorted(event) if key in _TOLD)
        world.note("log", said)
        raise structlog.DropEvent

    structlog.configure(
        processors=[tell],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=False,
    )
    logging_before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging_before)
        structlog.configure(**before)


_TOLD: Final = frozenset({"event", "reason", "what", "count", "queue", "kind", "model"})
