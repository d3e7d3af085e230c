"""Metrics of a runner's limiters and leases."""

import asyncio

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Limits, TutorModel
from socratic_bench.domain.leasing import LeaseAnswer
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.hosting.metrics import Metrics
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.metrics.scraped import (
    MODELS,
    OTHER,
    ModelNames,
    add_breaker_metrics,
    add_lease_metrics,
    add_limit_metrics,
)
from socratic_runner.model_pool import ModelPool
from tests.unit.events.examples import TIME
from tests.unit.services.runner.limits.simulated_server import through
from tests.unit.services.runner.scripted import (
    EXPERIMENT,
    ONE,
    THREE,
    ScriptedClient,
    carry_out,
    reply,
)
from tests.unit.services.runner.scripted import MODEL as SCRIPTED

MODEL = TutorModel(id="openai/gpt", limits=Limits(concurrency=4))


def limit_metrics(limiters):
    metrics = Metrics()
    add_limit_metrics(metrics, limiters, ModelNames())

    def value(figure, model=MODEL.id):
        return metrics.registry.get_sample_value(f"socratic_model_{figure}", {"model": model})

    return value


async def test_permits_in_use_and_the_limit_in_force_are_shown():
    limiters = ConcurrencyLimiters(most=9)
    value = limit_metrics(limiters)
    assert value("calls_in_flight") is None
    limiter = limiters.limiter_for(MODEL, None)
    async with through(limiter, 1) as permit:
        assert (value("calls_in_flight"), value("concurrency_limit")) == (1, limiter.slots)
        permit.replied(reply())
    assert value("calls_in_flight") == 0


def test_the_limit_is_a_share_where_runners_share_a_ceiling():
    limiters = ConcurrencyLimiters(most=9)
    value = limit_metrics(limiters)
    limiters.limiter_for(MODEL, None).set_share(0, 2)
    assert value("concurrency_limit") == 0


async def test_a_pause_is_shown_in_seconds():
    limiters = ConcurrencyLimiters(most=9, clock=asyncio.get_running_loop().time)
    value = limit_metrics(limiters)
    refused = ModelCallFailed(FailureKind.RATE_LIMITED, "slow", retryable=True, retry_after=50.0)
    async with through(limiters.limiter_for(MODEL, None), 1) as permit:
        assert value("pause_seconds") == 0
        permit.failed(refused)
    assert 0 < value("pause_seconds") <= 50


def test_accounts_of_one_model_and_models_beyond_a_number_share_a_series():
    limiters = ConcurrencyLimiters(most=9)
    value = limit_metrics(limiters)
    elsewhere = MODEL.model_copy(update={"base_url": "https://proxy.example/v1"})
    both = [limiters.limiter_for(model, None) for model in (MODEL, elsewhere)]
    assert value("concurrency_limit") == sum(limiter.slots for limiter in both)
    for number in range(MODELS + 4):
        limiters.limiter_for(TutorModel(id=f"replay/{number}"), 1)
    assert value("concurrency_limit", OTHER) == 5


async def test_a_model_that_is_stopped_has_an_open_breaker_for_each_experiment_until_a_reply():
    metrics = Metrics()
    pool = ModelPool(lambda _: ScriptedClient(lambda *_: reply()), ConcurrencyLimiters(most=9))
    add_breaker_metrics(metrics, pool, ModelNames())

    def opened():
        return metrics.registry.get_sample_value(
            "socratic_model_breakers_open", {"model": SCRIPTED.id}
        )

    assert opened() is None
    again = Experiment(manifest=EXPERIMENT.manifest, occasion="again", created_at=TIME)
    both = [pool.model(experiment, SCRIPTED.id) for experiment in (EXPERIMENT, again)]
    assert opened() == 0
    for model in both:
        model.breaker.trip(ModelCallFailed(FailureKind.AUTH, "bad key", retryable=False), 0.0)
    assert opened() == 2
    assert both[0].breaker.admit() is None
    assert opened() == 2, "a probe has told nothing yet"
    both[0].breaker.replied()
    assert opened() == 1


async def test_a_runner_counts_the_answers_to_its_claims():
    store = MemoryStore()
    await store.register(EXPERIMENT)
    metrics, names = Metrics(), ModelNames()

    def watch(limiters, leases, _pool):
        add_limit_metrics(metrics, limiters, names)
        add_lease_metrics(metrics, leases.answers)

    await carry_out(store, ScriptedClient(lambda *_: reply()), ONE, THREE, watch=watch)
    await store.close()
    value = metrics.registry.get_sample_value
    counts = {
        answer: value("socratic_lease_answers_total", {"answer": answer.name.lower()})
        for answer in LeaseAnswer
    }
    assert counts == dict.fromkeys(LeaseAnswer, 0) | {LeaseAnswer.GRANTED: 1 + 3}
    assert value("socratic_model_calls_in_flight", {"model": SCRIPTED.id}) == 0
