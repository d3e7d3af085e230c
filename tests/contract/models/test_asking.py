"""Promises of every model client to its callers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from socratic_bench.ports.models import ModelClient, Reply
from socratic_bench.scoring.statuses import Status
from tests.contract.models.adapters import ModelAdapter
from tests.waiting import waiting_for


def said(reply: Reply) -> Reply:
    """A reply without how long it took, which no real model repeats."""
    return replace(reply, latency_ms=None, first_token_ms=None)


async def test_the_same_question_has_the_same_answer(
    adapter: ModelAdapter, client: ModelClient, tmp_path: Path
):
    question = adapter.questions()[0]
    other_process = adapter.open(tmp_path)
    first, again, elsewhere = (
        await client.ask(question),
        await client.ask(question),
        await other_process.ask(question),
    )
    await other_process.close()
    assert said(first) == said(again) == said(elsewhere)


async def test_a_reply_says_how_it_ended_and_what_it_took(
    adapter: ModelAdapter, client: ModelClient
):
    reply = await client.ask(adapter.questions()[0])
    assert reply.text
    assert reply.status in {Status.OK, Status.TRUNCATED, Status.REFUSED}
    assert isinstance(reply.latency_ms, int)
    assert reply.latency_ms >= 0
    assert reply.usage.visible_output_tokens is not None
    assert reply.usage.visible_output_tokens > 0


async def test_questions_asked_at_once_get_the_answers_they_get_one_by_one(
    adapter: ModelAdapter, client: ModelClient
):
    questions = adapter.questions()[: adapter.many]
    assert len(questions) == adapter.many
    one_by_one = [said(await client.ask(question)) for question in questions]
    async with waiting_for("the answers to all questions at once"):
        at_once = await asyncio.gather(*(client.ask(question) for question in questions))
    assert [said(reply) for reply in at_once] == one_by_one


async def test_a_later_turn_is_answered_with_what_came_before(
    adapter: ModelAdapter, client: ModelClient
):
    question = adapter.questions(turn=2)[0]
    assert question.earlier_turns
    assert (await client.ask(question)).text


async def test_a_cancelled_call_leaves_the_client_free_for_the_next(
    adapter: ModelAdapter, client: ModelClient
):
    question, other = adapter.questions()[0], adapter.questions(turn=2)[0]
    expected = said(await client.ask(question))
    calls = [asyncio.create_task(client.ask(asked)) for asked in (other, question, other)]
    await asyncio.sleep(0)  # lets each of them begin
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    async with waiting_for("the answer after a cancelled call"):
        assert said(await client.ask(question)) == expected


async def test_closing_twice_does_nothing(adapter: ModelAdapter, client: ModelClient):
    await client.ask(adapter.questions()[0])
    await client.close()
    await client.close()


async def test_closing_a_client_that_was_never_asked_does_nothing(client: ModelClient):
    await client.close()


@pytest.mark.parametrize("calls", [1, 3])
async def test_closing_ends_the_calls_that_are_running(
    adapter: ModelAdapter, client: ModelClient, calls: int
):
    running = [asyncio.create_task(client.ask(adapter.questions()[0])) for _ in range(calls)]
    await asyncio.sleep(0)  # lets each of them begin
    async with waiting_for("the end of the client and its calls"):
        await client.close()
        await asyncio.gather(*running, return_exceptions=True)
