"""Services of different versions work side by side, as during a deployment.

The version that first published an event wrote its payload and schema in tests/golden. The schemas
describe what that version accepts. Nothing rewrites them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.scenario import Scenario
from socratic_bench.events.codec import Message, decode, encode
from socratic_bench.results.verification import verify
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.profiles import profile_named
from socratic_curator.bootstrap import curator_workers
from socratic_curator.settings import CuratorSettings
from socratic_judge.bootstrap import judge_worker
from socratic_judge.settings import JudgeSettings
from socratic_runner.bootstrap import runner_dispatcher, runner_worker, unwatched
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.models.registry import open_client
from socratic_runner.settings import RunnerSettings
from socratic_runner.troubles import Troubles, tell_the_log
from tests.unit.events.examples import RUN, example_events
from tests.waiting import waiting_for

GOLDEN = Path(__file__).parents[1] / "golden" / "events" / "v1"
EVENTS = example_events()
TO_WORKERS = ("run.requested", "response.recorded", "response.scored", "run.failed")
NAME_IN_PAYLOADS = b"exp-0123456789abcdef"
"""A field of the experiment that no plan has: a runner carries out only plans that it
understands."""

VECTORS = set(profile_named(CANONICAL).vectors)


def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.json").read_bytes()


def golden_of_a_later_version(name: str) -> bytes:
    """With unknown fields at every depth."""

    def with_more(value: Any) -> Any:
        if isinstance(value, dict):
            more = {} if value.keys() & VECTORS else {"mood": ["curious", {"since": 2027}]}
            return {key: with_more(each) for key, each in value.items()} | more
        return [with_more(each) for each in value] if isinstance(value, list) else value

    return json.dumps(with_more(json.loads(golden(name)))).encode()


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((GOLDEN / "schemas" / f"{name}.json").read_text()))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = SqlStore.from_url(f"sqlite:///{tmp_path}/benchmark.db")
    await opened.prepare()
    yield opened
    await opened.close()


def the_experiment() -> Experiment:
    """The experiment of the payloads."""
    scenario = Scenario(
        id="ambiguous-growth",
        dimension="ambiguous",
        prompt="We don't grow.",
        follow_ups=("But what should I do?",),
    )
    return Experiment(
        manifest=Manifest(
            models=(TutorModel(id="reference/socratic"),), scenarios=(scenario,), repeats=2
        ),
        created_at=SystemClock().now(),
    )


@pytest.mark.parametrize("payload", [golden, golden_of_a_later_version])
async def test_payloads_of_other_versions_pass_through_the_services_of_today(
    store: SqlStore, payload: Callable[[str], bytes]
) -> None:
    experiment_id = (await store.register(the_experiment())).experiment_id
    planned_id = run_id(experiment_id, RUN.model_id, RUN.scenario_id, RUN.repeat)
    broker = MemoryBroker()
    clock = SystemClock()
    await broker.declare(WORK_QUEUES, BROADCASTS)
    settings = RunnerSettings()
    async with runner_dispatcher(
        broker.publish,
        store,
        clock,
        open_client,
        settings,
        owner="today",
        limits=store,
        observer=UNOBSERVED,
        troubles=Troubles(UNOBSERVED, tell_the_log),
        watch=unwatched,
    ) as dispatcher:
        workers = (
            runner_worker(broker, dispatcher, settings),
            judge_worker(broker, clock, JudgeSettings()),
            *curator_workers(broker, store, clock, CuratorSettings()),
        )
        async with waiting_for("the services"), asyncio.TaskGroup() as tasks:
            for worker in workers:
                tasks.create_task(worker.run())
            for name in TO_WORKERS:
                body = payload(name).replace(NAME_IN_PAYLOADS, experiment_id.encode())
                body = body.replace(RUN.run_id.encode(), planned_id.encode())
                event = decode(body)
                await broker.publish([Message(event.id, event.type, event.partitionkey, body)])
            while broker.outstanding:  # noqa: ASYNC110 - the broker tells no event of it
                await asyncio.sleep(0.01)
            for worker in workers:
                worker.drain()
    assert [
        letter for queue in WORK_QUEUES for letter in await broker.dead_letters(queue.name)
    ] == []
    await broker.close()
    cells = await store.cells([experiment_id])
    # The second turn was both recorded and scored before: it counts once, and overrules a failure.
    assert [(cell.key.turn, cell.responses, cell.scored) for cell in cells] == [
        (1, 1, 1),
        (2, 1, 1),
    ]
    assert (await store.progress(experiment_id)).done == 1
    assert await verify(store, experiment_id) == []


@pytest.mark.parametrize("name", EVENTS)
def test_the_first_version_accepts_what_is_published_today(name: str) -> None:
    schema(name).validate(json.loads(encode(EVENTS[name])))


@pytest.mark.parametrize("name", EVENTS)
def test_the_first_version_ignores_what_a_later_one_adds(name: str) -> None:
    later = json.loads(encode(EVENTS[name]))
    later["traceparent"] = "00-1-2-03"
    later["data"]["mood"] = "curious"
    schema(name).validate(later)


@pytest.mark.parametrize("name", EVENTS)
def test_a_field_that_is_missing_or_renamed_would_be_noticed(name: str) -> None:
    whole = json.loads(encode(EVENTS[name]))
    for field in ("id", "source", "data"):
        with pytest.raises(ValidationError, match=field):
            schema(name).validate({key: value for key, value in whole.items() if key != field})
