"""Messages that no plan holds change no figure, and cause no call."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.codec import Event, to_message
from socratic_bench.events.event_types import ResponseScored, RunFailed, RunRequested
from socratic_bench.results.verification import verify
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL
from tests.contract.store.facts import contents
from tests.e2e.command import Terminal
from tests.e2e.service_processes import all_ready
from tests.e2e.services.test_stopping import typed
from tests.servers import postgresql, rabbitmq
from tests.waiting import until

pytestmark = pytest.mark.connected

NOW = datetime(2026, 3, 2, tzinfo=UTC)
MODEL = "reference/socratic"
PLAN = json.dumps({"models": [MODEL], "repeats": 1})
FIGURES: dict[str, float | None] = {"verbosity": 0.0, "exploratory": 0.0, "interrogative": 0.0}


def forged(planned: Experiment) -> list[Event]:
    """Facts about runs that the plan does not hold, and facts that contradict themselves."""
    [first, *_] = planned.runs()

    def run(**changes: object) -> Run:
        parts = {**first.model_dump(), **changes}
        named = run_id(
            *(parts[part] for part in ("experiment_id", "model_id", "scenario_id", "repeat"))
        )
        return Run.model_validate({**parts, "run_id": changes.get("run_id", named)})

    def scored(run: Run, *, turn: int = 1, profile: str = CANONICAL, overall: float = 0.0) -> Event:
        score = ScoredResponse(
            run=run,
            turn=turn,
            last_turn=True,
            profile=profile,
            status=Status.OK,
            vectors=FIGURES,
            overall=overall,
            usage=Usage(visible_output_tokens=9),
        )
        return ResponseScored.of(score, source="forged", time=NOW)

    failure = RunFailure(
        run=run(repeat=2), turn=1, profile=CANONICAL, kind="timeout", message="late", attempts=1
    )
    requests = [run(repeat=2), run(repeat=100_000), run(run_id="run-none"), run(scenario_id="no")]
    return [
        *(RunRequested.of(each, source="forged", time=NOW) for each in requests),
        scored(run(repeat=2)),
        scored(run(scenario_id="no")),
        scored(run(model_id="openai/gpt-9")),
        scored(run(experiment_id="exp-none")),
        scored(first, turn=1_000_000),
        scored(first, profile="no-such"),
        scored(first, overall=1.0),
        RunFailed.of(failure, source="forged", time=NOW),
    ]


async def test_what_no_plan_holds_is_a_dead_letter_and_changes_no_figure(tmp_path) -> None:
    async with (
        rabbitmq.namespace() as address,
        postgresql.prepared_database() as database,
        AsyncExitStack() as opened,
    ):
        environment = {"SOCRATIC_BROKER_URL": address, "SOCRATIC_STORE_URL": database}
        terminal = Terminal(tmp_path, environment)
        store, broker = open_store(database), open_broker(address)
        opened.push_async_callback(store.close)
        opened.push_async_callback(broker.close)
        await broker.declare(WORK_QUEUES, BROADCASTS)
        async with all_ready(environment, "runner", "judge", "curator"):
            path = terminal.write("b.json", PLAN)
            submitted = await typed(terminal, "submit", path)
            id_ = submitted.stdout.strip()
            await until(
                lambda: store.experiment(id_),
                lambda it: bool(it and it.completed_at),
                "its completion",
            )
            cells, calls = contents(await store.cells([id_])), await store.calls(id_)
            planned = await store.experiment(id_)
            assert planned is not None
            events = forged(planned)
            await broker.publish([to_message(each) for each in events])
            # Runners serve the model's group again, in which the forged requests stand first.
            await typed(terminal, "submit", path, "--occasion", "next", "--fresh")

            async def reasons() -> list[str]:
                return [
                    letter.reason
                    for queue in WORK_QUEUES
                    for letter in await broker.dead_letters(queue.name, limit=100)
                ]

            told = await until(reasons, lambda it: len(it) == len(events), "all dead letters")
        assert sum("not in the plan" in reason for reason in told) == len(events) - 1, told
        assert any("its vectors give 0.0" in reason for reason in told), told
        assert contents(await store.cells([id_])) == cells
        assert await store.calls(id_) == calls
        assert await verify(store, id_) == []
        board = json.loads((await typed(terminal, "leaderboard", "--format", "json")).stdout)
        assert [each["total_runs"] for each in board["models"] if each["kind"] != "baseline"] == [
            15
        ]
