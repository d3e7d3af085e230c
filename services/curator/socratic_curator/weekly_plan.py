"""The experiment of a week: the configuration in S3, on the occasion of the ISO week.

Planned twice in a week it is the same experiment, which gets what it misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from socratic_bench.adapters.aws.documents import read_object
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.config_file.config import parse_config
from socratic_bench.planning.model_catalogue import RegisteredModels
from socratic_bench.planning.plan import PlanCounts, PlanStore, resume
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock

SOURCE: Final = "socratic-scheduler"


async def plan_week(
    config_object: str, store: PlanStore, broker: Broker, clock: Clock
) -> tuple[Experiment, PlanCounts]:
    """Request the runs of this week's experiment that are not done.

    Raises InvalidSettings without the object, and InvalidConfig for mistakes in it.
    """
    text = await read_object(config_object)
    config = parse_config(text, name=config_object, base_folder=None, catalogue=RegisteredModels())
    now = clock.now()
    config = replace(config, occasion=config.occasion or week_of(now))
    experiment = await store.register(config.experiment(now))

    async def publish(events: Sequence[Event]) -> None:
        await broker.publish([to_message(event) for event in events])

    counts = await resume(experiment, None, store, publish, clock=clock, source=SOURCE)
    return experiment, counts


def week_of(time: datetime) -> str:
    """Return the ISO week of a time, such as 2026-W48."""
    year, week, _ = time.isocalendar()
    return f"{year}-W{week:02}"
