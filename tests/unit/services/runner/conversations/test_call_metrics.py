"""Calls to models as metrics: outcomes, tokens, costs and times, of a bounded number of models."""

from __future__ import annotations

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.hosting.metrics import Metrics
from socratic_runner.metrics.scraped import MODELS, OTHER, CallMetrics, ModelNames
from tests.unit.services.runner.scripted import (
    EXPERIMENT,
    ONE,
    THREE,
    ScriptedClient,
    carry_out,
    reply,
)
from tests.unit.services.runner.scripted import MODEL as SCRIPTED

MODEL = "openai/gpt"


def test_calls_are_counted_with_what_they_took() -> None:
    metrics = Metrics()
    calls, value = CallMetrics(metrics, ModelNames()), metrics.registry.get_sample_value
    usage = Usage(input_tokens=80, visible_output_tokens=12, reasoning_tokens=3)
    calls.replied(MODEL, 0.5, usage, 1_500_000_000)
    calls.replied(MODEL, 1.5, Usage(), None)
    calls.failed(MODEL, 30, FailureKind.RATE_LIMITED)
    model = {"model": MODEL}
    assert value("socratic_calls_total", {**model, "outcome": "ok"}) == 2
    assert value("socratic_calls_total", {**model, "outcome": "rate_limited"}) == 1
    assert value("socratic_call_tokens_total", {**model, "direction": "input"}) == 80
    assert value("socratic_call_tokens_total", {**model, "direction": "output"}) == 15
    assert value("socratic_call_usd_total", model) == 1.5
    assert value("socratic_call_seconds_count", model) == 3
    assert value("socratic_call_seconds_sum", model) == 32


def test_models_beyond_a_number_share_a_name() -> None:
    metrics = Metrics()
    calls, value = CallMetrics(metrics, ModelNames()), metrics.registry.get_sample_value
    for number in range(MODELS + 5):
        calls.failed(f"replay/{number}", 1, "timeout")
    calls.failed("replay/0", 1, "timeout")
    assert value("socratic_calls_total", {"model": OTHER, "outcome": "timeout"}) == 5
    assert value("socratic_calls_total", {"model": "replay/0", "outcome": "timeout"}) == 2
    assert (
        value("socratic_calls_total", {"model": f"replay/{MODELS}", "outcome": "timeout"}) is None
    )


async def test_a_runner_counts_the_calls_it_makes() -> None:
    store = MemoryStore()
    await store.register(EXPERIMENT)
    metrics = Metrics()
    calls = CallMetrics(metrics, ModelNames())
    overloaded = ModelCallFailed(FailureKind.OVERLOADED, "not now", retryable=True)
    for run, at_once in ((ONE, False), (THREE, True)):
        client = ScriptedClient(lambda _, asked: overloaded if asked == 1 else reply())
        client.answers_at_once = at_once
        await carry_out(store, client, run, observer=calls)
    await store.close()
    value, model = metrics.registry.get_sample_value, {"model": SCRIPTED.id}
    assert value("socratic_calls_total", {**model, "outcome": "ok"}) == 1 + 3
    assert value("socratic_calls_total", {**model, "outcome": "overloaded"}) == 2
    assert value("socratic_call_tokens_total", {**model, "direction": "output"}) == 4 * 15
    assert value("socratic_call_usd_total", model) == pytest.approx(4 * 0.00013)
