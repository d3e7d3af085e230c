"""Running services rescore an experiment: a killed judge and a second request change nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from socratic_bench.results.verification import verify
from tests.e2e.experiments import completed, dead_letters, submitted
from tests.e2e.service_processes import all_ready, started
from tests.waiting import until

pytestmark = pytest.mark.connected

CONFIG = """
models: [reference/socratic, reference/lecturer]
scenarios:
  - {id: one, dimension: student, prompt: "What is 3 x 4?", follow_ups: ["So 12?"]}
  - {id: two, dimension: ethical, prompt: "May I?"}
repeats: 20
"""
RESPONSES = 2 * (2 + 1) * 20


async def cells(store, experiment_id, profile):
    found = [each for each in await store.cells([experiment_id]) if each.key.profile == profile]
    return {each.key: each.to_json() for each in found}


async def rescored(terminal, experiment_id):
    words = ("rescore", experiment_id, "--profile", "socratic-v2", "--json")
    done = await asyncio.to_thread(terminal.run, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_services_rescore_an_experiment_though_its_judge_is_killed(
    services_terminal, environment, addresses, store
):
    async with all_ready(environment, "runner", "judge", "curator") as services:
        experiment_id = await submitted(services_terminal, CONFIG)
        experiment = await completed(store, experiment_id)
        called = await store.calls(experiment_id)
        own = await cells(store, experiment_id, "socratic-v1")
        rescoring = asyncio.create_task(rescored(services_terminal, experiment_id))
        await until(
            lambda: store.scored_profiles([experiment_id]),
            lambda profiles: profiles[experiment_id] == ("socratic-v1", "socratic-v2"),
            "the first score by the other profile",
        )
        services["judge"].kill()
        async with started("judge", environment) as judge:
            await judge.ready()
            first = await rescoring
            other = await cells(store, experiment_id, "socratic-v2")
            second = await rescored(services_terminal, experiment_id)

    assert (first["responses"], first["failures"]) == (RESPONSES, 0)
    assert (second["runs"], second["already_scored"]) == (0, 80)
    assert await cells(store, experiment_id, "socratic-v1") == own
    assert await cells(store, experiment_id, "socratic-v2") == other
    found = await store.cells([experiment_id])
    assert sum(each.scored for each in found) == 2 * RESPONSES
    assert await verify(store, experiment_id) == []
    assert await store.calls(experiment_id) == called
    assert await store.experiment(experiment_id) == experiment
    assert await dead_letters(addresses) == []
