"""Calls in a provider's batches: each answer is paid once, whenever the process ends."""

import asyncio
import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, Parameters, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.response import Usage
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.models import Question, Reply
from socratic_bench.providers.endpoints import Endpoints
from socratic_bench.results.verification import verify
from socratic_bench.scoring.exchange import Status
from socratic_cli import embedded
from socratic_cli.embedded import Benchmark, BenchmarkResult
from socratic_runner.models.http.client import HttpClient
from socratic_runner.models.registry import open_client
from tests.lengths import at_length
from tests.servers.providers.batches import READ, TEXT, WRITTEN, BatchProvider, key_of
from tests.unit.events.examples import TIME
from tests.waiting import until

PRICE = Price(input_per_million=Decimal(3), output_per_million=Decimal(15))
A_CALL = PRICE.cost_nanodollars(READ, WRITTEN)
MODELS = ("openai/gpt-x", "anthropic/claude-x")


class VirtualClock:
    def now(self) -> datetime:
        return TIME + timedelta(seconds=asyncio.get_running_loop().time())


CLOCK = VirtualClock()


class MortalStore:
    """The store of one process: after the process was killed, nothing reaches it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        if self.is_dead:
            raise StoreUnavailable("the process is dead")
        return getattr(self._store, name)


class World:
    """A provider and a store, which outlive the processes that use them."""

    def __init__(self, experiment: Experiment, provider: BatchProvider, monkeypatch: Any) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setattr(embedded, "WATCH_INTERVAL", 10.0)
        self.experiment = experiment
        self.provider = provider
        self.store = MemoryStore()
        self.kills = 0
        self.dice = random.Random(7)
        self.chance = 0.0
        """That a process is killed before or after a request about batches."""

        self._dying = asyncio.Event()

    def open_client(self, model: TutorModel) -> HttpClient:
        client = open_client(model, endpoints=Endpoints())
        assert isinstance(client, HttpClient)

        async def ask(question: Question) -> Reply:
            self.provider.called[key_of(client.body(question))] += 1
            usage = Usage(visible_output_tokens=WRITTEN, reasoning_tokens=0, input_tokens=READ)
            return Reply(TEXT, Status.OK, usage, latency_ms=1, stop_reason="stop")

        async def exchange(*request: Any) -> bytes:
            before, after = (self.dice.random() < self.chance for _ in range(2))
            await self._may_die(before)
            answer = await self.provider.exchange(*request)
            await self._may_die(after)
            return answer

        client.ask, client.exchange = ask, exchange  # type: ignore[assignment, method-assign]
        return client

    async def _may_die(self, dies: bool) -> None:
        if dies or self._dying.is_set():
            self._dying.set()
            await asyncio.Event().wait()

    async def process(self) -> BenchmarkResult | None:
        """Run a process to its end; None: it was killed."""
        self._dying.clear()
        store = MortalStore(self.store)
        await self.store.leave_others("nobody")
        benchmark = Benchmark(
            self.experiment, store, self.open_client, limits=self.store, clock=CLOCK
        )
        running = asyncio.create_task(benchmark.execute())
        dying = asyncio.create_task(self._dying.wait())
        await asyncio.wait((running, dying), return_when=asyncio.FIRST_COMPLETED)
        dying.cancel()
        if running.done():
            return await running
        # A killed call outside of batches may be paid twice.
        await until(self._is_calling, lambda is_calling: not is_calling, "calls in flight")
        store.is_dead = True
        self.kills += 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return None

    async def _is_calling(self) -> bool:
        experiment_id = self.experiment.experiment_id
        waiting = await self.store.waiting_turns(experiment_id)
        in_flight = (await self.store.spending(experiment_id)).in_flight
        return in_flight > sum(each.reserve for each in waiting)

    async def until_done(self) -> BenchmarkResult:
        result = None
        while result is None:
            result = await self.process()
        return result


def experiment(model: str, repeats: int) -> Experiment:
    return Experiment(
        manifest=Manifest(
            models=(TutorModel(id=model, price=PRICE, options={"batch": True}),),
            scenarios=(
                Scenario(id="one", dimension="ambiguous", prompt="Help?"),
                Scenario(id="three", dimension="student", prompt="A?", follow_ups=("B?", "C?")),
            ),
            parameters=Parameters(max_tokens=600),
            repeats=repeats,
            budget=Decimal(100),
        ),
        created_at=TIME,
    )


@pytest.mark.two_lengths
@pytest.mark.parametrize("model", MODELS)
async def test_each_answer_is_paid_once_whenever_processes_end(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, requests = random.Random(model), at_length(500, 2_000)
    fates = random.Random(0)
    known: dict[str, str] = {}

    def fate(name: str) -> str:
        chosen = fates.choices(("succeeded", "errored", "expired", "canceled"), (97, 1, 1, 1))
        return known.setdefault(name, chosen[0])

    provider = BatchProvider(
        CLOCK.now,
        ends_at=lambda now: now + timedelta(hours=dice.uniform(0.05, 0.6)),
        fate=fate,
        fails=lambda: "token_limit_exceeded" if dice.random() < 0.1 else None,
    )
    world = World(experiment(model, requests // 4), provider, monkeypatch)
    world.chance = at_length(0.05, 0.02)
    result = await world.until_done()
    assert (result.progress.done, result.progress.failed) == (requests // 2, 0)
    assert world.kills >= 3
    paid = provider.in_batch + provider.called
    assert provider.in_batch.total() > provider.called.total() > 0
    experiment_id = world.experiment.experiment_id
    if model.startswith("openai"):  # a seed tells the turns of equal questions apart
        assert set(paid.values()) == {1}
    assert paid.total() == requests
    billed = provider.in_batch.total() * A_CALL // 2 + provider.called.total() * A_CALL
    assert (await world.store.spending(experiment_id)).committed == billed
    assert list(await world.store.waiting_turns(experiment_id)) == []
    assert await verify(world.store, experiment_id) == []


async def test_a_provider_that_refuses_batches_is_called_at_the_full_price(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = BatchProvider(CLOCK.now, refuses=True)
    world = World(experiment(MODELS[0], 1), provider, monkeypatch)
    told: list[str] = []
    benchmark = Benchmark(
        world.experiment, world.store, world.open_client, limits=world.store, clock=CLOCK
    )
    monkeypatch.setattr(benchmark.troubles, "_tell", lambda each: told.append(each.sentence))
    await benchmark.execute()
    assert provider.called.total() == 4
    spending = await world.store.spending(world.experiment.experiment_id)
    assert spending.committed == 4 * A_CALL
    [sentence] = told
    assert sentence.endswith("it takes no batches: its calls are made one by one, at full price)")
