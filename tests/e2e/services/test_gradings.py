"""Gradings over RabbitMQ and PostgreSQL: killed runners repeat at most the calls in flight."""

from __future__ import annotations

import importlib.util
import json
import signal
from collections.abc import Iterable

import pytest

from socratic_bench.domain.grading import grading_run_id
from socratic_bench.ports.stores.store import Store
from socratic_bench.scoring.exchange import Status
from tests.e2e.experiments import completed, dead_letters, submitted
from tests.e2e.service_processes import all_ready, started
from tests.servers.providers.grader import grader
from tests.waiting import until

pytestmark = [pytest.mark.connected, pytest.mark.long, pytest.mark.xdist_group("a real model")]

TUTORS = ["reference/socratic", "reference/lecturer", "reference/drifter"]
LOCAL = ["local/smollm2"] if importlib.util.find_spec("xllamacpp") else []
SCENARIOS = [
    {"id": f"question-{number}", "dimension": "student", "prompt": f"What is {number} x 12?"}
    for number in range(5)
]
KILLED_AFTER = (3, 15)
"""Calls of the grader before each kill."""


async def all_stored(store: Store, experiment_id: str, texts: Iterable[str]) -> None:
    """Wait until the gradings of these texts are stored."""
    run_ids = {grading_run_id(experiment_id, text) for text in texts}
    await until(
        lambda: store.responses(run_ids),
        lambda stored: stored.keys() == run_ids,
        "the answered gradings to be stored",
    )


async def test_a_runner_is_killed_twice_and_no_stored_grading_is_paid_again(
    services_terminal, addresses, store
):
    async with grader() as model, all_ready(addresses, "judge", "curator"):
        config = {
            "models": [*TUTORS, *LOCAL],
            "scenarios": SCENARIOS,
            "repeats": 2,
            "parameters": {"max_tokens": 8},
            "use_llm_exploratory": {"model": model.model},
        }
        in_flight = 0
        experiment_id = await submitted(services_terminal, json.dumps(config))
        for calls in KILLED_AFTER:
            async with started("runner", addresses) as runner:
                await runner.ready()
                await model.until_asked(calls)
                model.hold()
                await model.until_waiting(1)
                await all_stored(store, experiment_id, model.answered)
                runner.kill()
                assert await runner.ended() == -signal.SIGKILL
                in_flight += model.waiting
            await model.drop_waiting()
            await model.release()
        async with started("runner", addresses) as runner:
            await runner.ready()
            experiment = await completed(store, experiment_id)

    texts = len(model.calls_of_a_text)
    print(f"{texts} texts, {len(model.asked)} calls, at most {in_flight} in flight at the kills")
    assert texts <= len(model.asked) <= texts + in_flight
    scores = [each async for page in store.score_rows(experiment_id) for each in page]
    assert len(scores) == experiment.manifest.planned_runs
    for each in scores:
        if each.status is Status.OK:
            vectors = each.vectors or {}
            assert vectors["exploratory"] is not None, each
            assert vectors["exploratory_heuristic"] is not None, each
            assert each.overall is not None
    assert await dead_letters(addresses) == []
