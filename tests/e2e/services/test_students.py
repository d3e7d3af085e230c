"""A student's messages over RabbitMQ and PostgreSQL: a kill neither loses one nor makes two."""

from __future__ import annotations

import json
import signal
from itertools import count

import pytest

from socratic_bench.domain.student import student_run_id
from tests.e2e.embedded.test_students import SCENARIOS, TUTORS
from tests.e2e.experiments import completed, dead_letters, submitted
from tests.e2e.service_processes import all_ready, started
from tests.servers.providers.grader import student
from tests.waiting import until

pytestmark = [pytest.mark.connected, pytest.mark.long]

KILLED_AFTER = (3, 12)
"""Calls of the student's model before each kill."""


async def test_a_runner_is_killed_twice_and_every_stored_message_is_the_one_that_is_answered(
    services_terminal, addresses, store
):
    numbers = count(1)
    config = {"models": TUTORS, "scenarios": SCENARIOS, "repeats": 2, "profile": "fidelity-1"}
    async with (
        student(lambda _: f"Message {next(numbers)}, please.") as model,
        all_ready(addresses, "judge", "curator"),
    ):
        config["student"] = {"model": model.model}
        experiment_id = await submitted(services_terminal, json.dumps(config))
        experiment = await store.experiment(experiment_id)
        runs = [run.run_id for run in experiment.runs()]
        students = {student_run_id(run) for run in runs}

        async def messages():
            found = await store.responses(students)
            return {(run, each.turn): each.text for run in found for each in found[run]}

        in_flight, before = 0, dict[tuple[str, int], str]()
        for calls in KILLED_AFTER:
            async with started("runner", addresses) as runner:
                await runner.ready()
                await model.until_asked(calls)
                model.hold()
                await model.until_waiting(1)
                await until(messages, lambda them: len(them) >= len(model.answered), "messages")
                runner.kill()
                assert await runner.ended() == -signal.SIGKILL
                in_flight += model.waiting
            await model.drop_waiting()
            await model.release()
            now = await messages()
            assert before.items() <= now.items()
            before = now
        async with started("runner", addresses) as runner:
            await runner.ready()
            await completed(store, experiment_id)

    said = await messages()
    assert before.items() <= said.items()
    assert len(said) == len(set(said.values())) == len(runs) * 3
    assert len(said) < len(model.asked) <= len(said) + in_flight
    answers = await store.responses(runs)
    for run in runs:
        assert [each.student_message for each in answers[run][1:]] == [
            said[student_run_id(run), turn] for turn in (2, 3, 4)
        ]
    assert await dead_letters(addresses) == []
