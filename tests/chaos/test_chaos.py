"""Everything is killed, cut, repeated and poisoned, and the figures are those of a quiet run.

One round in `make test-all`, as many as one likes in `make chaos`.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.consuming.dispatch import to_message
from socratic_bench.consuming.queues import (
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
    WORK_QUEUES,
)
from socratic_bench.domain.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.errors import BrokerUnavailable, StoreUnavailable
from socratic_bench.events.codec import Event
from socratic_bench.planning.plan import publish_plan
from socratic_bench.planning.scenario_packs import load_pack
from socratic_bench.ports.store import Store
from socratic_bench.reporting.verification import verify
from socratic_embedded.pipeline import Benchmark
from socratic_runner.models.registry import open_client
from tests import evidence
from tests.chaos.duplicates import delivered_twice
from tests.chaos.poison import Poison, poison, publish
from tests.chaos.stack import Stack, stack
from tests.servers.discovery import NotHere, missing
from tests.waiting import waiting_for

pytestmark = [pytest.mark.connected, pytest.mark.long]

ROUNDS = int(os.environ.get("SOCRATIC_CHAOS_ROUNDS", "1"))
"""How often each kind of accident happens, twice over."""

ARCHETYPES = ("socratic", "lecturer", "hedger", "drifter", "faulty")
ACCIDENTS = (
    *("runner", "judge", "curator", "connections") * 2,
    *("api", "rabbitmq", "postgresql", "read-only", "freeze"),
)
SERVICES = ("runner-1", "runner-2", "judge-1", "judge-2", "curator-1", "curator-2", "api-1")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
PATIENCE = 600.0 + 240.0 * ROUNDS
"""Seconds until a hang is taken for one; on a busy machine a round takes six minutes."""


def experiment() -> Experiment:
    """25 models, 10,125 runs a round; one in five answers after a while, the others at once."""
    models = tuple(
        TutorModel(
            id=f"reference/{archetype}@{number}",
            options={"latency_ms": 15} if number == 5 else {},
            limits=Limits(timeout_seconds=3),
        )
        for archetype in ARCHETYPES
        for number in range(1, 6)
    )
    return Experiment(
        manifest=Manifest(models=models, scenarios=load_pack(), repeats=27 * ROUNDS),
        created_at=NOW,
    )


def another() -> Experiment:
    """One run, of an experiment that nobody registered."""
    manifest = Manifest(
        models=(TutorModel(id="reference/socratic@1"),), scenarios=load_pack()[:1], repeats=1
    )
    return Experiment(manifest=manifest, occasion="repaired", created_at=NOW)


async def cells_of(store: Store, experiment_id: str) -> list[tuple[object, ...]]:
    return [
        (*cell.key, cell.dimension, cell.to_json()) for cell in await store.cells([experiment_id])
    ]


async def cells_of_a_quiet_run(folder: Path) -> list[tuple[object, ...]]:
    store = SqlStore.from_url(f"sqlite:///{folder}/quiet.db")
    try:
        await store.prepare()
        await Benchmark(experiment(), store, open_client).execute()
        return await cells_of(store, experiment().experiment_id)
    finally:
        await store.close()


async def plan(on: Stack, chance: random.Random) -> None:
    """Request every run twice, in no order, however often the broker is away meanwhile."""

    async def publish_twice(events: Sequence[Event]) -> None:
        messages = [to_message(event) for event in events] * 2
        chance.shuffle(messages)
        while True:
            try:
                await on.broker.publish(messages)
            except BrokerUnavailable:
                continue
            return

    await publish_plan(experiment(), on.store, publish_twice, clock=on.clock)


async def done(store: Store, experiment_id: str) -> int:
    try:
        return (await store.progress(experiment_id)).done
    except StoreUnavailable:
        return 0


async def until_done(on: Stack, experiment_id: str, at_least: int) -> None:
    while (so_far := await done(on.store, experiment_id)) < at_least:
        on.raise_if_a_service_gave_up()
        on.note(f"{so_far // 500 * 500} runs")
        await asyncio.sleep(0.05)


async def dead_letters(on: Stack) -> dict[str, str]:
    """The reason of every dead letter."""
    return {
        letter.message.id: letter.reason
        for queue in WORK_QUEUES
        for letter in await on.broker.dead_letters(queue.name, limit=1_000)
    }


def assert_poisoned(found: dict[str, str], doses: Sequence[Poison]) -> None:
    assert found.keys() == {dose.id for dose in doses}
    for dose in doses:
        assert dose.reason in found[dose.id]


@pytest.mark.timeout(PATIENCE + 120)
async def test_whatever_breaks_the_cells_are_those_of_a_quiet_run(tmp_path: Path) -> None:
    chance = evidence.chance()
    expected = await cells_of_a_quiet_run(tmp_path)
    chaos, planned = experiment().experiment_id, experiment().manifest.planned_runs
    accidents = list(ACCIDENTS) * ROUNDS
    chance.shuffle(accidents)
    accidents.insert(0, "purge")  # before there is any poison, which has to be found again
    try:
        breaking = stack(*SERVICES)
        on = await breaking.__aenter__()
    except NotHere as error:
        missing(str(error))
    try:
        await on.store.register(experiment())
        doses = poison("reference/socratic@1", another())
        async with (
            waiting_for("all runs through all accidents", PATIENCE),
            delivered_twice(
                on.rabbitmq.url,
                JUDGE_RESPONSE_RECORDED,
                CURATOR_RESPONSE_SCORED,
                CURATOR_RUN_FAILED,
            ),
        ):
            planning = asyncio.create_task(plan(on, chance))
            happen = on.accidents(chance)
            for number, accident in enumerate(accidents, start=1):
                await until_done(on, chaos, planned * number // (len(accidents) + 2))
                if number == len(accidents) // 2:
                    await publish(on.rabbitmq.url, doses, "reference/socratic@1")
                await happen(accident)
            await planning
            await until_done(on, chaos, planned)
            await on.until_queues_are_empty()
        assert await cells_of(on.store, chaos) == expected
        assert await verify(on.store, chaos) == []
        shown = (await on.services["api-1"].get("/api/model-comparison")).json()
        assert sum(model["total_runs"] for model in shown["models"]) == planned
        assert (await on.store.experiment(chaos)).completed_at is not None
        assert await on.most_calls_of_a_turn(besides="faulty") <= 1 + on.runner_kills
        assert_poisoned(await dead_letters(on), doses)

        await on.store.register(another())
        repaired = another().experiment_id
        assert await on.broker.redrive(RUNNER_RUN_REQUESTED.name) >= 2
        await until_done(on, repaired, 1)
        assert (await on.store.progress(repaired)).failed == 0
        await on.until_queues_are_empty()
        assert_poisoned(
            await dead_letters(on), [dose for dose in doses if dose.reason != "not in the store"]
        )
        assert await cells_of(on.store, chaos) == expected
        assert await on.end_services() == dict.fromkeys(SERVICES, 0)
    except BaseException:
        evidence.keep("what was broken", on.story)
        raise
    finally:
        await breaking.__aexit__(None, None, None)
