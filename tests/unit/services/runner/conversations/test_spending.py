"""Budgets: no call may exceed the rest of the budget, and a skipped run is not lost."""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Limits,
    Manifest,
    OwnParameters,
    Parameters,
    TutorModel,
)
from socratic_bench.domain.money import Price, nanodollars
from socratic_bench.domain.response import Usage
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.ports.models import Reply
from socratic_bench.ports.stores.leases import Spending
from socratic_bench.results.verification import verify
from socratic_bench.scoring.exchange import Status
from socratic_cli.embedded import Benchmark, BenchmarkResult
from socratic_runner.conversations.conversation import Conversation
from tests.unit.events.examples import TIME
from tests.unit.services.runner.scripted import ScriptedClient
from tests.waiting import waiting_for

A_CALL_AT_MOST = 600_000 + 200_000
"""Nanodollars: 600 tokens out, and at most 200 in, at 1 USD for a million of either."""

PRICE = Price(input_per_million=Decimal(1), output_per_million=Decimal(1))
MODEL = TutorModel(id="scripted/tutor", price=PRICE, limits=Limits(concurrency=10))
SCENARIO = Scenario(id="one", dimension="ambiguous", prompt="Help?")


def experiment(budget: str | None, *, repeats: int = 50, model: TutorModel = MODEL) -> Experiment:
    manifest = Manifest(
        models=(model,),
        scenarios=(SCENARIO,),
        system_prompt="You are a tutor.",
        parameters=Parameters(max_tokens=600),
        repeats=repeats,
        budget=None if budget is None else Decimal(budget),
    )
    return Experiment(manifest=manifest, created_at=TIME)


def reply(output_tokens: int = 100) -> Reply:
    usage = Usage(visible_output_tokens=output_tokens, input_tokens=100)
    return Reply(text="What?", status=Status.OK, usage=usage, latency_ms=1, stop_reason="stop")


async def soon(answer: Reply) -> Reply:
    await asyncio.sleep(0.005)
    return answer


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    store = MemoryStore()
    yield store
    await store.close()


async def carried_out(
    store: MemoryStore, client: ScriptedClient, planned: Experiment
) -> tuple[BenchmarkResult, Spending]:
    async with waiting_for("the benchmark"):
        result = await Benchmark(planned, store, lambda _: client, limits=store).execute()
    assert await verify(store, planned.experiment_id) == []
    return result, await store.spending(planned.experiment_id)


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_cap_stops_calls_and_fails_no_run(store: MemoryStore, at_once: bool) -> None:
    client = ScriptedClient(lambda *_: reply() if at_once else soon(reply()))
    client.answers_at_once = at_once
    budget = "0.003"
    result, spending = await carried_out(store, client, experiment(budget))
    assert spending.exhausted
    assert (result.progress.failed, result.stopped) == (0, False)
    assert result.progress.done == len(client.asked) < 50
    assert spending.committed == len(client.asked) * 200_000
    # Nothing is left that another call would have fitted into.
    assert nanodollars(Decimal(budget)) - A_CALL_AT_MOST < spending.committed
    assert spending.committed <= nanodollars(Decimal(budget))


def test_a_model_is_asked_with_its_own_limit_of_tokens():
    own = OwnParameters(max_tokens=4000)
    planned = experiment(None, model=MODEL.model_copy(update={"parameters": own}))
    question = Conversation(next(planned.runs()), planned).question()
    assert question.parameters == Parameters(max_tokens=4000)


async def test_a_raised_budget_goes_on_where_the_lower_one_stopped(store: MemoryStore) -> None:
    client = ScriptedClient(lambda *_: soon(reply()))
    stopped, _ = await carried_out(store, client, experiment("0.003"))
    result, spending = await carried_out(store, client, experiment("1"))
    assert not spending.exhausted
    assert result.progress.done == 50
    assert len(client.asked) == 50 == stopped.calls + result.calls


async def test_without_a_budget_what_is_spent_is_known_all_the_same(store: MemoryStore) -> None:
    client = ScriptedClient(lambda *_: soon(reply()))
    _, spending = await carried_out(store, client, experiment(None))
    paid = 50 * 200_000
    assert spending == Spending(None, paid, in_flight=0, exhausted=False, paid=paid)


async def test_a_call_that_may_have_been_paid_for_counts_with_what_it_could_cost(
    store: MemoryStore,
) -> None:
    def script(_question, call):
        if call == 1:
            return ModelCallFailed(FailureKind.CUT_STREAM, "half an answer", retryable=True)
        return (
            ModelCallFailed(FailureKind.OVERLOADED, "no answer", retryable=True)
            if call == 2
            else reply()
        )

    _, spending = await carried_out(store, ScriptedClient(script), experiment("1", repeats=1))
    assert spending.in_flight == 0
    lost = spending.committed - 200_000
    assert 600_000 < lost <= A_CALL_AT_MOST + 100_000


async def test_a_budget_for_nothing_makes_no_call(store: MemoryStore) -> None:
    client = ScriptedClient(lambda *_: soon(reply()))
    result, spending = await carried_out(store, client, experiment("0"))
    assert (client.asked, result.progress.done, spending.committed) == ([], 0, 0)
    assert spending.exhausted


async def test_a_model_that_costs_nothing_needs_none_of_the_budget(store: MemoryStore) -> None:
    free = Price(input_per_million=Decimal(0), output_per_million=Decimal(0))
    model = MODEL.model_copy(update={"price": free})
    client = ScriptedClient(lambda *_: soon(reply()))
    result, spending = await carried_out(store, client, experiment("0", model=model))
    assert (result.progress.done, spending.exhausted) == (50, False)
