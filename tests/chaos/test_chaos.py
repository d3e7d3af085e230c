"""The figures survive kills, cut connections, duplicates and poison, on real servers.

`make test-all` runs one round, `make chaos` as many as ROUNDS says. The services' own mistakes are
a matter of tests/simulation/chaos/, which breaks far more; here are the servers' and drivers'.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.consuming.queues import (
    CURATOR_RESPONSE_SCORED,
    CURATOR_RUN_FAILED,
    JUDGE_RESPONSE_RECORDED,
    RUNNER_RUN_REQUESTED,
    WORK_QUEUES,
)
from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.errors import BrokerUnavailable, SocraticBenchError, StoreUnavailable
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.planning.plan import resume
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.verification import verify
from tests import evidence
from tests.chaos.duplicates import delivered_twice
from tests.chaos.poison import Poison, poison, publish
from tests.chaos.stack import Stack, stack
from tests.e2e.quiet_run import cells_of, cells_of_a_quiet_run
from tests.servers.discovery import NotHere, missing
from tests.waiting import until, waiting_for

pytestmark = [pytest.mark.connected, pytest.mark.long]

ROUNDS = int(os.environ.get("SOCRATIC_CHAOS_ROUNDS", "1"))
"""How often each kind of accident happens."""

ARCHETYPES = ("socratic", "lecturer", "hedger", "drifter", "faulty")
ACCIDENTS = (
    *("runner", "judge", "curator", "connections", "connections"),
    *("api", "rabbitmq", "postgresql", "read-only", "freeze", "alarm"),
)
LOSSES = ("purge", "delete", "discard")
"""What loses messages for good: happens before there is any poison, which has to be found again."""

SERVICES = ("runner-1", "runner-2", "judge-1", "judge-2", "curator-1", "curator-2", "api-1")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
PATIENCE = 600.0 + 240.0 * ROUNDS
"""Seconds until a hang is taken for one; on a busy machine a round takes six minutes."""


def experiment() -> Experiment:
    """25 models, 3,000 runs a round; one in five answers after a while, the others at once."""
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
        manifest=Manifest(models=models, scenarios=load_pack(), repeats=8 * ROUNDS),
        created_at=NOW,
    )


def another() -> Experiment:
    """One run of each model, of an unregistered experiment."""
    models = experiment().manifest.models
    manifest = Manifest(models=models, scenarios=load_pack()[:1], repeats=1)
    return Experiment(manifest=manifest, occasion="repaired", created_at=NOW)


async def plan(on: Stack, chance: random.Random) -> None:
    """Request every run twice, in random order, however often the broker is away."""

    async def publish_twice(events: Sequence[Event]) -> None:
        messages = [to_message(event) for event in events] * 2
        chance.shuffle(messages)
        while True:
            try:
                await on.broker.publish(messages)
            except BrokerUnavailable:
                continue
            return

    planned = await on.store.register(experiment())
    await resume(planned, planned.runs(), on.store, publish_twice, clock=on.clock)


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


async def all_are_dead_letters(on: Stack, doses: Sequence[Poison]) -> None:
    """A dead-letter queue that a crash left without a leader is replaced after a while."""
    poisonous = {dose.id for dose in doses}
    found = await until(
        lambda: dead_letters(on),
        lambda dead: poisonous <= dead.keys(),
        "the poison to be dead",
        300,
    )
    assert found.keys() == poisonous
    for dose in doses:
        assert dose.reason in found[dose.id]


async def break_everything(on: Stack, chance: random.Random, doses: Sequence[Poison]) -> None:
    """Request a benchmark, and break one thing after another while it goes on, to its end."""
    chaos, planned = experiment().experiment_id, experiment().manifest.planned_runs
    accidents, losses = list(ACCIDENTS) * ROUNDS, list(LOSSES)
    chance.shuffle(accidents)
    chance.shuffle(losses)
    happen = on.accidents(chance)
    steps = len(losses) + len(accidents) + 2
    planning = asyncio.create_task(plan(on, chance))
    for number, loss in enumerate(losses, start=1):
        await until_done(on, chaos, planned * number // steps)
        await happen(loss)
    await until_done(on, chaos, planned * (len(losses) + 1) // steps)
    async with delivered_twice(
        on.rabbitmq.url, JUDGE_RESPONSE_RECORDED, CURATOR_RESPONSE_SCORED, CURATOR_RUN_FAILED
    ):
        for number, accident in enumerate(accidents, start=len(losses) + 1):
            await until_done(on, chaos, planned * number // steps)
            if number == steps // 2:
                await publish(on.rabbitmq.url, doses, "reference/socratic@1")
            await happen(accident)
        await planning
        await until_done(on, chaos, planned)


async def repair(on: Stack, doses: Sequence[Poison]) -> None:
    """Register the experiment of a dead letter, and put the letter back: it is carried out.

    Its models are those of the first experiment: second requests that came back after its end, when
    nobody served its models, are settled, too.
    """
    planned = await on.store.register(another())
    letter, *others = planned.runs()
    assert await on.broker.redrive(RUNNER_RUN_REQUESTED.name) >= 2

    async def request(events: Sequence[Event]) -> None:
        await on.broker.publish([to_message(event) for event in events])

    await resume(planned, others, on.store, request, clock=on.clock)
    await until_done(on, planned.experiment_id, planned.manifest.planned_runs)
    assert letter.run_id in await on.store.responses([letter.run_id])
    await on.until_queues_are_empty()
    await all_are_dead_letters(on, [each for each in doses if each.reason != "not in the store"])


@pytest.mark.timeout(PATIENCE + 720)
async def test_whatever_breaks_the_cells_are_those_of_a_quiet_run(tmp_path: Path) -> None:
    chance = evidence.chance()
    chaos, planned = experiment().experiment_id, experiment().manifest.planned_runs
    doses = poison("reference/socratic@1", another())
    # Most of it is pauses of faulty models, as it is here.
    quiet = asyncio.create_task(cells_of_a_quiet_run(experiment(), tmp_path))
    try:
        breaking = stack(*SERVICES)
        on = await breaking.__aenter__()
    except NotHere as error:
        await cancelled(quiet)
        missing(str(error))
    try:
        await on.store.register(experiment())
        async with waiting_for("all runs through all accidents", PATIENCE):
            await break_everything(on, chance, doses)
        expected = await quiet
        assert await cells_of(on.store, chaos) == expected
        assert await verify(on.store, chaos) == []
        shown = (await on.services["api-1"].get("/api/model-comparison")).json()
        assert sum(model["total_runs"] for model in shown["models"]) == planned
        assert (await on.store.experiment(chaos)).completed_at is not None
        assert await on.most_calls_of_a_turn(besides="faulty") <= 1 + on.runner_kills
        await all_are_dead_letters(on, doses)
        await repair(on, doses)
        assert await cells_of(on.store, chaos) == expected
        assert await on.end_services() == dict.fromkeys(SERVICES, 0)
    except BaseException as error:
        error.add_note(on.story())
        with suppress(TimeoutError, SocraticBenchError):
            async with asyncio.timeout(30):
                error.add_note(await on.what_is_left(experiment()))
        raise
    finally:
        await breaking.__aexit__(None, None, None)
        await cancelled(quiet)
