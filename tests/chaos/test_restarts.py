"""Service processes are stopped and killed again and again while there is work to do.

Two processes of each kind run. A new process replaces each that ends. Nothing else breaks. Only
here a signal ends a real process: the moments of a kill are many more in tests/simulation/chaos/.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from socratic_bench.adapters.brokers.rabbitmq.broker import RabbitMQBroker
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, TutorModel
from socratic_bench.events.codec import Event, to_message
from socratic_bench.planning.config_file.scenario_selection import load_pack
from socratic_bench.planning.plan import resume
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.verification import verify
from tests import evidence
from tests.e2e.quiet_run import cells_of, cells_of_a_quiet_run
from tests.e2e.service_processes import ServiceProcess, start
from tests.servers import postgresql, rabbitmq
from tests.waiting import until

pytestmark = [pytest.mark.connected, pytest.mark.long]

KINDS = ("runner", "judge", "curator")
ROUNDS = int(os.environ.get("SOCRATIC_CHAOS_ROUNDS", "1"))
"""`make chaos` has five."""

DRAINS = 4 * ROUNDS
KILLS = 8 * ROUNDS
RUNS_EACH = 250
"""Runs from one that goes to the next."""

TUTORS = ("socratic", "lecturer", "hedger", "drifter")
HASTY = {"SOCRATIC_RUNNER_BUSY_DELAY": "1", "SOCRATIC_CURATOR_QUIET": "20"}
PATIENCE = 900.0 + 900.0 * ROUNDS
"""Seconds until a hang is taken for one. Quiet machines take a quarter of them."""

HELD = """
SELECT count(*) AS held FROM calls WHERE owner LIKE $1 AND lease_id <> ''
AND NOT EXISTS (SELECT 1 FROM responses
    WHERE responses.run_id = calls.run_id AND responses.turn = calls.turn)
"""
"""Leases of one runner whose calls have no response.

Another runner takes each of them over once their owner is dead: one call more than planned. A
drained runner leaves none, since it stores its replies and gives back the rest.
"""


def an_experiment(runs: int) -> Experiment:
    """An experiment of about so many runs, none of them done at once."""
    scenarios = load_pack()
    models = tuple(
        TutorModel(
            id=f"reference/{tutor}",
            options={"latency_ms": 100},
            limits=Limits(concurrency=5),
        )
        for tutor in TUTORS
    )
    repeats = 1 + runs // (len(TUTORS) * len(scenarios))
    manifest = Manifest(models=models, scenarios=scenarios, repeats=repeats)
    return Experiment(manifest=manifest, created_at=SystemClock().now())


def unlimited(experiment: Experiment) -> Experiment:
    """The same experiment without limits, for a quick undisturbed run."""
    models = tuple(
        model.model_copy(update={"limits": Limits()}) for model in experiment.manifest.models
    )
    manifest = experiment.manifest.model_copy(update={"models": models})
    return Experiment(manifest=manifest, created_at=experiment.created_at)


@dataclass
class Services:
    """Two processes of each kind, and the record of their ends."""

    environment: Mapping[str, str]
    store: Store
    broker: Broker
    running: dict[str, ServiceProcess] = field(default_factory=dict)
    all: list[ServiceProcess] = field(default_factory=list)
    held: int = 0
    """Leases that killed runners left."""

    async def start(self, name: str) -> None:
        self.running[name] = await start(name.partition("-")[0], self.environment)
        self.all.append(self.running[name])

    async def drain(self, name: str) -> None:
        """Tell one to stop, with another in its place from then on."""
        leaving = await self.running[name].ready()
        leaving.terminate()
        await self.start(name)
        assert await leaving.ended() == 0, leaving.text

    async def kill(self, name: str) -> None:
        """Kill one, and start another."""
        killed = await self.running[name].ready()
        killed.kill()
        assert await killed.ended() == -signal.SIGKILL
        if killed.kind == "runner":
            store_url = self.environment["SOCRATIC_STORE_URL"]
            # A lease that was being committed counts, and one whose response was does not.
            await postgresql.until_open_transactions_end(store_url)
            [row] = await postgresql.execute(store_url, HELD, f"runner-%-{killed.pid}-%")
            self.held += row["held"]
        await self.start(name)

    async def done(self, experiment: Experiment, runs: int) -> None:
        """Wait until so many runs are done."""
        await until(
            lambda: self.store.progress(experiment.experiment_id),
            lambda progress: progress.done >= runs,
            f"{runs} runs",
            PATIENCE,
        )

    async def dead_letters(self) -> list[str]:
        return [
            f"{queue.name}, {letter.message.id}: {letter.reason}"
            for queue in WORK_QUEUES
            for letter in await self.broker.dead_letters(queue.name)
        ]


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    async with rabbitmq.namespace() as broker_url, postgresql.prepared_database() as store_url:
        broker, store = RabbitMQBroker(broker_url), SqlStore.from_url(store_url)
        addresses = {"SOCRATIC_BROKER_URL": broker_url, "SOCRATIC_STORE_URL": store_url}
        them = Services({**addresses, **HASTY}, store, broker)
        try:
            await broker.declare(WORK_QUEUES, BROADCASTS)
            for number in (1, 2):
                for kind in KINDS:
                    await them.start(f"{kind}-{number}")
            for each in them.running.values():
                await each.ready()
            yield them
        finally:
            await asyncio.gather(*(each.close() for each in them.all))
            await broker.close()
            await store.close()


@pytest.mark.timeout(PATIENCE + 120)
async def test_whoever_is_stopped_or_killed_the_cells_are_those_of_a_quiet_run(
    services: Services, tmp_path: Path
) -> None:
    ways = ["drain"] * DRAINS + ["kill"] * KILLS
    evidence.chance().shuffle(ways)
    experiment = an_experiment(RUNS_EACH * (len(ways) + 2))
    planned = experiment.manifest.planned_runs

    async def publish(events: Sequence[Event]) -> None:
        await services.broker.publish([to_message(event) for event in events])

    await services.store.register(experiment)
    await resume(experiment, experiment.runs(), services.store, publish, clock=SystemClock())
    midway = 0
    names = list(services.running)
    for number, way in enumerate(ways):
        await services.done(experiment, RUNS_EACH * (number + 1))
        name = names[number % len(names)]
        await (services.drain(name) if way == "drain" else services.kill(name))
        progress = await services.store.progress(experiment.experiment_id)
        midway += progress.done < planned
    await services.done(experiment, planned)
    calls = (await services.store.calls(experiment.experiment_id)).calls
    print(
        f"{DRAINS} drains, {KILLS} kills, {midway} midway: {planned} runs, {calls} calls, "
        f"{services.held} leases left by kills"
    )
    assert midway >= 0.8 * len(ways), "too few went in the middle of the work to say anything"
    assert calls == planned + services.held
    assert await services.dead_letters() == []
    assert await verify(services.store, experiment.experiment_id) == []
    assert await cells_of(services.store, experiment.experiment_id) == await cells_of_a_quiet_run(
        unlimited(experiment), tmp_path
    )
