"""A benchmark ends when its last reply is scored, whatever pause a stage takes, also on a stop."""

from __future__ import annotations

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.concurrency.retry_policy import AdaptivePause
from socratic_bench.consuming import worker
from socratic_bench.ports.models import Reply
from socratic_cli.embedded import Benchmark
from tests.contract.store.facts import an_experiment
from tests.unit.services.runner.scripted import ScriptedClient, reply
from tests.waiting import waiting_for


class LongPause(AdaptivePause):
    """An hour between two batches of a stage."""

    def next(self, lasted: float) -> float:
        return 3_600.0


async def test_no_pause_of_a_stage_delays_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "AdaptivePause", LongPause)
    store = MemoryStore()
    client = ScriptedClient(lambda *_: reply())
    async with waiting_for("the end of the benchmark"):
        result = await Benchmark(an_experiment(), store, lambda _: client, limits=store).execute()
    # The first call of a model is alone, so the replies come one after the other.
    assert result.progress.done == result.progress.planned == len(client.asked) > 1
    await store.close()


async def test_a_stopped_benchmark_scores_every_reply_that_it_has_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "AdaptivePause", LongPause)
    store = MemoryStore()

    def answer(*_: object) -> Reply:
        if len(client.asked) == 4:
            benchmark.stop()
        return reply()

    client = ScriptedClient(answer)
    benchmark = Benchmark(an_experiment(), store, lambda _: client, limits=store)
    async with waiting_for("the end of the benchmark"):
        result = await benchmark.execute()
    assert result.stopped
    assert result.progress.done == result.calls < result.progress.planned
    await store.close()
