"""The promises of a model client. The tests need a fixture `under_test`, a ClientUnderTest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Protocol

import pytest

from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question, Reply
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import HOSTILE, pack_questions, waiting_for


class Questions(Protocol):
    """Makes questions of one turn of a conversation."""

    def __call__(self, *, turn: int = 1) -> list[Question]: ...


@dataclass(frozen=True)
class ClientUnderTest:
    """A client and what it can answer."""

    open: Callable[[], ModelClient]
    """Opens a client of the same model each time, as another process would."""

    questions: Questions = pack_questions
    """Questions that the model has an answer to."""

    many: int = 10
    """How many questions the suite asks at once."""

    repeatable: bool = True
    """Whether the same question has the same answer: the question carries a seed."""


@pytest.fixture
async def client(under_test: ClientUnderTest) -> AsyncIterator[ModelClient]:
    client = under_test.open()
    yield client
    await client.close()


def said(reply: Reply) -> Reply:
    """A reply without its latencies, which no real model repeats."""
    return replace(reply, latency_ms=None, first_token_ms=None)


async def test_the_same_question_has_the_same_answer(
    under_test: ClientUnderTest, client: ModelClient
) -> None:
    if not under_test.repeatable:
        pytest.skip("the model answers by chance")
    question = under_test.questions()[0]
    other_process = under_test.open()
    first, again, elsewhere = (
        await client.ask(question),
        await client.ask(question),
        await other_process.ask(question),
    )
    await other_process.close()
    assert said(first) == said(again) == said(elsewhere)


async def test_a_reply_says_how_it_ended_and_what_it_took(
    under_test: ClientUnderTest, client: ModelClient
) -> None:
    reply = await client.ask(under_test.questions()[0])
    assert reply.text
    assert reply.status in {Status.OK, Status.TRUNCATED, Status.REFUSED}
    assert isinstance(reply.latency_ms, int)
    assert reply.latency_ms >= 0
    assert reply.usage.visible_output_tokens is not None
    assert reply.usage.visible_output_tokens > 0


async def test_questions_asked_at_once_get_the_answers_they_get_one_by_one(
    under_test: ClientUnderTest, client: ModelClient
) -> None:
    questions = under_test.questions()[: under_test.many]
    assert len(questions) == under_test.many
    one_by_one = [said(await client.ask(question)) for question in questions]
    async with waiting_for("the answers to all questions at once"):
        at_once = await asyncio.gather(*(client.ask(question) for question in questions))
    if under_test.repeatable:
        assert [said(reply) for reply in at_once] == one_by_one


async def test_a_later_turn_is_answered_with_what_came_before(
    under_test: ClientUnderTest, client: ModelClient
) -> None:
    question = under_test.questions(turn=2)[0]
    assert question.earlier_turns
    assert (await client.ask(question)).text


async def test_a_hostile_text_gets_a_reply_or_a_failure_of_the_port(
    under_test: ClientUnderTest, client: ModelClient
) -> None:
    question = under_test.questions()[0]
    for number, text in enumerate(HOSTILE):
        try:
            reply = await client.ask(question._replace(student_message=text))
        except ModelCallFailed:
            continue
        assert isinstance(reply.text, str), f"text {number}"


async def test_a_cancelled_call_leaves_the_client_free_for_the_next(
    under_test: ClientUnderTest, client: ModelClient
) -> None:
    question, other = under_test.questions()[0], under_test.questions(turn=2)[0]
    expected = said(await client.ask(question))
    calls = [asyncio.create_task(client.ask(asked)) for asked in (other, question, other)]
    await asyncio.sleep(0)  # lets each of them begin
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    async with waiting_for("the answer after a cancelled call"):
        answer = said(await client.ask(question))
    assert answer == expected or not under_test.repeatable


async def test_closing_twice_does_nothing(under_test: ClientUnderTest, client: ModelClient) -> None:
    await client.ask(under_test.questions()[0])
    await client.close()
    await client.close()


async def test_closing_a_client_that_was_never_asked_does_nothing(client: ModelClient) -> None:
    await client.close()


@pytest.mark.parametrize("calls", [1, 3])
async def test_closing_ends_the_calls_that_are_running(
    under_test: ClientUnderTest, client: ModelClient, calls: int
) -> None:
    running = [asyncio.create_task(client.ask(under_test.questions()[0])) for _ in range(calls)]
    await asyncio.sleep(0)  # lets each of them begin
    async with waiting_for("the end of the client and its calls"):
        await client.close()
        await asyncio.gather(*running, return_exceptions=True)
