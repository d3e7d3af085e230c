"""The figures on SQS and DynamoDB survive kills, faults of AWS and duplicates, and so does money.

A short form of the chaos test, over an emulator: nothing here has run on AWS itself.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.planning.plan import resume
from socratic_bench.ports.stores.responses import TurnKey
from socratic_bench.results.verification import verify
from tests import evidence
from tests.chaos.aws_stack import AwsStack, aws_stack
from tests.chaos.counting_runner import MadeCall, made_calls
from tests.e2e.quiet_run import cells_of, cells_of_a_quiet_run
from tests.waiting import until, waiting_for

pytestmark = [pytest.mark.connected, pytest.mark.long]

STEADY = ("socratic", "lecturer", "hedger", "drifter")
FAULTY = "faulty"
ACCIDENTS = (*("runner",) * 3, "judge", "curator", *("connections",) * 2, "away", "freeze")
SERVICES = ("runner-1", "runner-2", "judge-1", "curator-1", "curator-2")
REPEATS = 2
PATIENCE = 600.0
"""Seconds until a hang is taken for one."""


def experiment() -> Experiment:
    """21 models, 630 runs; a fifth of them answer at once, the others after a while."""
    models = [
        TutorModel(
            id=f"reference/{archetype}@{number}",
            options={"latency_ms": 40 * number},
            limits=Limits(timeout_seconds=10),
        )
        for archetype in STEADY
        for number in range(5)
    ]
    models.append(TutorModel(id=f"reference/{FAULTY}", limits=Limits(timeout_seconds=10)))
    return Experiment(
        manifest=Manifest(models=tuple(models), scenarios=load_pack(), repeats=REPEATS),
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


async def plan(on: AwsStack, chance: random.Random) -> None:
    """Request every run twice, in random order."""

    async def publish_twice(events: Sequence[Event]) -> None:
        messages = [to_message(event) for event in events] * 2
        chance.shuffle(messages)
        await on.broker.publish(messages)

    planned = await on.store.register(experiment())
    await resume(planned, planned.runs(), on.store, publish_twice, clock=SystemClock())


async def until_done(on: AwsStack, at_least: int) -> None:
    """Wait until so many runs are done."""

    async def done() -> int:
        on.raise_if_a_service_gave_up()
        return (await on.store.progress(experiment().experiment_id)).done

    await until(done, lambda count: count >= at_least, f"{at_least} runs", PATIENCE)


async def break_everything(on: AwsStack, chance: random.Random) -> None:
    """Request a benchmark, and break one thing after another while it goes on, to its end."""
    planned = experiment().manifest.planned_runs
    accidents = ["purge", *chance.sample(ACCIDENTS, len(ACCIDENTS))]
    happen = on.accidents(chance, experiment().experiment_id)
    await plan(on, chance)
    for number, accident in enumerate(accidents, start=1):
        await until_done(on, planned * number // (len(accidents) + 1))
        await happen(accident)
    await until_done(on, planned)


def by_turn(calls: Sequence[MadeCall]) -> dict[TurnKey, list[MadeCall]]:
    """The calls for each turn, in their order."""
    turns: defaultdict[TurnKey, list[MadeCall]] = defaultdict(list)
    for call in calls:
        turns[call.turn].append(call)
    return turns


async def check_calls(on: AwsStack, calls: Sequence[MadeCall]) -> None:
    """Each call had a lease, and a second call for a turn repeats one that a stopped runner had in
    flight.

    So stops times the calls in flight at each is the most that can be paid for twice.
    """
    made = by_turn(calls)
    counted = await on.calls_in_the_store(list(made))
    unleased = {turn: calls for turn, calls in made.items() if len(calls) > counted[turn]}
    assert not unleased, "the store has not counted these calls"
    repeated = {
        (call.pid, turn): calls
        for turn, calls in made.items()
        for call in calls[:-1]
        if FAULTY not in call.model_id
    }
    print(
        f"{len(calls)} calls; {on.stops} runners stopped with {len(on.in_flight)} calls in flight, "
        f"{len(repeated)} of them made again"
    )
    unexplained = {
        call: [f"{each.pid} after {each.at - calls[0].at:.1f} s" for each in calls]
        for call, calls in repeated.items()
        if call not in on.in_flight
    }
    assert not unexplained, "made again although no stopped runner had them in flight"


@pytest.mark.timeout(PATIENCE + 120)
async def test_whatever_breaks_on_aws_the_cells_are_those_of_a_quiet_run(tmp_path: Path) -> None:
    chance = evidence.chance()
    id_, planned = experiment().experiment_id, experiment().manifest.planned_runs
    quiet = await cells_of_a_quiet_run(experiment(), tmp_path)
    file = tmp_path / "calls"
    async with aws_stack(chance.randrange(2**32), file, *SERVICES) as on:
        try:
            async with waiting_for("all runs through all accidents", PATIENCE):
                await break_everything(on, chance)

            async def completed() -> bool:
                return (await on.store.experiment(id_)).completed_at is not None

            await until(completed, bool, "the completion")
            codes = await on.end_services()
            progress = await on.store.progress(id_)
            assert progress.done == planned
            assert await cells_of(on.store, id_) == quiet
            assert await verify(on.store, id_) == []
            await check_calls(on, made_calls(file))
            for queue in WORK_QUEUES:
                assert await on.broker.dead_letters(queue.name) == []
            assert codes == dict.fromkeys(SERVICES, 0)
            faults = on.gateway.faults
            assert min(faults["copied"], faults["throttled"], faults["lost after"]) > 10, faults
        except BaseException as error:
            error.add_note(", ".join(on.broken))
            raise
