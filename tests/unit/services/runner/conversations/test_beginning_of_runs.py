"""A batch of runs begins in parts: calls in flight have turns on the event loop in between."""

import asyncio
from itertools import pairwise

from socratic_bench.domain.experiment.manifest import Experiment, Manifest
from socratic_runner.handling.handler import BEGUN_AT_ONCE
from tests.unit.events.examples import TIME
from tests.unit.services.runner.scripted import (
    MODEL,
    SCENARIOS,
    ScriptedClient,
    parts_of_a_runner,
    requested,
)
from tests.waiting import waiting_for

RUNS = 2 * BEGUN_AT_ONCE + 50


async def test_the_runs_of_a_large_batch_begin_some_at_a_time(store):
    experiment = Experiment(
        manifest=Manifest(models=(MODEL,), scenarios=SCENARIOS[:1], repeats=RUNS), created_at=TIME
    )
    await store.register(experiment)
    never = asyncio.Event()
    client = ScriptedClient(lambda *_: never.wait())
    async with parts_of_a_runner(store, client, most=1) as parts:
        limiter = parts.pool.model(experiment, MODEL.id).limiter
        works = [requested(run) for run in experiment.runs()]
        handling = asyncio.create_task(anext(parts.handler(works)))
        begun = [0]
        async with waiting_for("the runs to begin"):
            while begun[-1] < RUNS:
                await asyncio.sleep(0)
                begun.append(limiter.waiting + limiter.in_flight)
        handling.cancel()
        await asyncio.wait([handling])
    assert max(after - before for before, after in pairwise(begun)) == BEGUN_AT_ONCE
