"""A failing model is reported at its first failed attempt, until it replies."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from socratic_bench.domain.response import Usage
from socratic_bench.errors import FailureKind, InvalidInput, ModelCallFailed, ModelUnusable
from socratic_bench.hosting.metrics import Metrics
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_bench.scoring.exchange import Status
from socratic_runner.conversations.call_outcomes import UNOBSERVED
from socratic_runner.leases import heartbeat
from socratic_runner.metrics.scraped import CallMetrics, ModelNames
from socratic_runner.troubles import MOST_SHOWN, Troubles
from tests.unit.services.runner.scripted import (
    MODEL,
    ONE,
    THREE,
    ScriptedClient,
    carry_out,
    reply,
)
from tests.waiting import until, waiting_for

IN_HAND = ModelInHand(ONE.experiment_id, ONE.model_id)
DOWN = ModelCallFailed(FailureKind.UNREACHABLE, "cannot be reached", retryable=True)
LIMITED = ModelCallFailed(FailureKind.RATE_LIMITED, "slow down", retryable=True)


class Seen(Troubles):
    """Records the reports, and the troubles at each change."""

    def __init__(self) -> None:
        self.told = []
        self.history = []
        super().__init__(UNOBSERVED, self.told.append)

    def failed(self, *what, **more) -> None:
        super().failed(*what, **more)
        self.history.append([(each.attempt, each.attempts) for each in self.present()])

    def replied(self, run) -> None:
        super().replied(run)
        self.history.append([(each.attempt, each.attempts) for each in self.present()])


async def test_it_is_told_once_with_its_attempts_and_is_over_with_the_reply(store):
    troubles = Seen()
    client = ScriptedClient(lambda _, asked: DOWN if asked <= 3 else reply())
    await carry_out(store, client, ONE, troubles=troubles)
    assert [(each.model_id, each.kind, each.attempt, each.attempts) for each in troubles.told] == [
        (MODEL.id, "unreachable", 1, 5)
    ]
    assert troubles.told[0].next_in_seconds is not None
    assert troubles.history == [[(1, 5)], [(2, 5)], [(3, 5)], []]


async def test_a_model_whose_reasoning_uses_up_its_tokens_is_told_of_once(store):
    troubles = Seen()
    spent = Usage(visible_output_tokens=0, reasoning_tokens=600)
    cut = replace(reply("", Status.TRUNCATED), stop_reason="length", usage=spent)
    await carry_out(store, ScriptedClient(lambda *_: cut), ONE, THREE, troubles=troubles)
    [told] = troubles.told
    assert told.sentence == (
        f"{MODEL.id}: 3 answers in a row have no text: 600 of 600 output tokens were reasoning, "
        "stop reason `length`; raise parameters.max_tokens (such answers have no score)"
    )


async def test_answers_between_such_ones_are_no_reason_to_tell(store):
    troubles = Seen()
    cut = replace(reply("", Status.TRUNCATED), stop_reason="length")
    client = ScriptedClient(lambda _, asked: reply() if asked == 3 else cut)
    await carry_out(store, client, THREE, troubles=troubles)
    assert troubles.told == []


async def test_models_that_answer_at_once_are_told_of_too(store):
    troubles = Seen()
    client = ScriptedClient(lambda _, asked: DOWN if asked == 1 else reply())
    client.answers_at_once = True
    await carry_out(store, client, ONE, THREE, troubles=troubles)
    assert len(troubles.told) == 1
    assert troubles.present() == []


async def test_the_last_attempt_says_so_and_a_refusal_without_a_call_replaces_no_reason(store):
    troubles = Seen()
    refused = ModelUnusable(FailureKind.AUTH, "the key was refused")
    await carry_out(store, ScriptedClient(lambda *_: refused), ONE, THREE, troubles=troubles)
    assert [(each.reason, each.next_in_seconds) for each in troubles.told] == [
        ("the key was refused", None)
    ]
    assert len(troubles.history) <= 2, "a call that was not made is no attempt"


async def test_a_model_that_cannot_be_opened_is_told_of(store):
    def open_client(_model):
        raise InvalidInput("there is no key")

    troubles = Seen()
    await carry_out(store, open_client, ONE, troubles=troubles)
    assert [each.sentence for each in troubles.told] == [
        f"{MODEL.id}: there is no key (not called)"
    ]
    assert troubles.present() == []


async def test_the_log_warns_once_of_a_model_that_is_down(store):
    with structlog.testing.capture_logs() as logs:
        await carry_out(store, ScriptedClient(lambda *_: DOWN), ONE, THREE)
    [line] = [line for line in logs if line["event"] == "model in trouble"]
    assert line["log_level"] == "warning"
    assert (line["model"], line["reason"], line["attempt"], line["attempts"]) == (
        MODEL.id,
        "cannot be reached",
        1,
        5,
    )
    assert line["correlation_id"] == ONE.experiment_id


async def test_while_runs_wait_the_store_knows_and_forgets_with_the_reply(store, monkeypatch):
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.02)
    may_reply, slow = asyncio.Event(), ModelCallFailed(FailureKind.TIMEOUT, "late", retryable=True)

    def script(_question, asked):
        return slow if asked == 1 else held()

    async def held():
        await may_reply.wait()
        return reply()

    async with waiting_for("the runs"), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(
            carry_out(store, ScriptedClient(script), THREE, troubles=Seen())
        )
        [told] = await until(lambda: store.troubles(THREE.experiment_id), bool, "the trouble")
        assert (told.model_id, told.reason, told.attempt) == (MODEL.id, "late", 1)
        assert await store.troubles("exp-other") == []
        may_reply.set()
        await running
    assert await store.troubles(THREE.experiment_id) == []


def fail(troubles, run=ONE, failure=DOWN):
    troubles.failed(run, failure, 1, 5, 2.0)


def test_the_next_attempt_comes_nearer():
    now = [100.0]
    troubles = Troubles(UNOBSERVED, lambda _: None, lambda: now[0])
    fail(troubles)
    now[0] += 1.5
    assert [each.next_in_seconds for each in troubles.present()] == [0.5]
    now[0] += 9
    assert [each.next_in_seconds for each in troubles.present()] == [0.0]


def test_metrics_count_the_models_in_trouble_by_their_latest_failure():
    metrics = Metrics()
    troubles = Troubles(CallMetrics(metrics, ModelNames()), lambda _: None)

    def shown(kind):
        labels = {"model": MODEL.id, "outcome": kind}
        return metrics.registry.get_sample_value("socratic_model_troubles", labels)

    fail(troubles)
    fail(troubles)
    assert shown("unreachable") == 1
    fail(troubles, failure=LIMITED)
    assert (shown("unreachable"), shown("rate_limited")) == (0, 1)
    troubles.replied(ONE)
    assert shown("rate_limited") == 0
    fail(troubles)
    troubles.forget([IN_HAND])
    assert shown("unreachable") == 0
    assert troubles.present() == []


def test_what_a_heartbeat_carries_is_bounded():
    troubles = Troubles(UNOBSERVED, lambda _: None)
    for number in range(MOST_SHOWN + 1):
        fail(troubles, ONE.model_copy(update={"model_id": f"m/{number}"}))
    shown = [each.model_id for each in troubles.present()]
    assert (len(shown), shown[-1]) == (MOST_SHOWN, f"m/{MOST_SHOWN}")
