"""Requests to Bedrock, and the reading of its replies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from socratic_bench.domain.response import Usage
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import a_question
from socratic_runner.models.aws import bedrock
from tests.integration.models.bedrock.bedrock_wire import (
    DEADLINE,
    SECRETS,
    START,
    Wire,
    answering,
    delta,
    event,
    isolate,
    metadata,
    opened,
    reply_to,
    responds,
    send_chunk,
    sends,
    stop,
)
from tests.waiting import until


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path, SECRETS)


async def test_a_stream_is_its_texts_with_the_counts_of_its_metadata():
    reply = await reply_to(sends(START, delta(text="What "), delta(text="if?"), stop(), metadata()))
    assert (reply.text, reply.status, reply.stop_reason) == ("What if?", Status.OK, "end_turn")
    assert reply.usage == Usage(visible_output_tokens=20, input_tokens=30)


async def test_cached_input_counts_as_input():
    cached = {"cacheReadInputTokens": 400, "cacheWriteInputTokens": 5}
    reply = await reply_to(sends(START, delta(text="Why?"), stop(), metadata(usage=cached)))
    assert reply.usage == Usage(
        visible_output_tokens=20, input_tokens=435, cached_tokens=400, cache_write_tokens=5
    )


REASONING = {"reasoningContent": {"text": "The student …"}}


async def test_reasoning_is_no_text_and_makes_the_visible_tokens_unknown():
    reply = await reply_to(sends(START, delta(**REASONING), delta(text="Why?"), stop(), metadata()))
    assert reply.text == "Why?"
    assert reply.usage == Usage(unsplit_output_tokens=20, input_tokens=30)


async def test_the_first_token_may_be_one_of_reasoning(monkeypatch: pytest.MonkeyPatch):
    goes_on, read = asyncio.Event(), []

    class StoppedWatch:
        """Shows how often it was read before."""

        @property
        def ms(self) -> int:
            read.append(True)
            return len(read)

    monkeypatch.setattr(bedrock, "_Stopwatch", StoppedWatch)

    async def answer(wire: Wire, writer: asyncio.StreamWriter) -> None:
        await sends(START, delta(**REASONING), whole=False)(wire, writer)
        await asyncio.wait_for(goes_on.wait(), DEADLINE)
        await send_chunk(writer, delta(text="Why?") + stop() + metadata())
        writer.write(b"0\r\n\r\n")

    async with answering(answer) as wire, opened(wire.address) as client:
        call = asyncio.create_task(client.ask(a_question()))
        await until(lambda: asyncio.sleep(0, len(read)), bool, "the time of the first token")
        goes_on.set()
        reply = await call
    assert reply.first_token_ms == 1
    assert reply.latency_ms is not None
    assert reply.latency_ms > 1


async def test_a_prompt_router_tells_which_model_it_chose():
    trace = {"promptRouter": {"invokedModelId": "arn:aws:bedrock:us-east-1::m/haiku"}}
    reply = await reply_to(sends(START, delta(text="Why?"), stop(), metadata(trace=trace)))
    assert reply.model_version == "arn:aws:bedrock:us-east-1::m/haiku"


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("end_turn", Status.OK),
        ("stop_sequence", Status.OK),
        ("max_tokens", Status.TRUNCATED),
        ("model_context_window_exceeded", Status.TRUNCATED),
        ("guardrail_intervened", Status.REFUSED),
        ("content_filtered", Status.REFUSED),
        ("tool_use", Status.ERROR),
        ("a_reason_of_next_year", Status.ERROR),
    ],
)
async def test_a_stop_reason_says_how_the_reply_ended(reason, status):
    streamed = await reply_to(sends(START, delta(text="Well"), stop(reason), metadata()))
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": "Well"}]}},
        "stopReason": reason,
        "usage": {"inputTokens": 30, "outputTokens": 20, "totalTokens": 50},
        "metrics": {"latencyMs": 5},
    }
    whole = await reply_to(responds(200, body), stream=False)
    assert streamed.status == whole.status == status
    assert streamed.stop_reason == whole.stop_reason == reason
    assert (streamed.text, streamed.usage) == (whole.text, whole.usage)


async def test_events_nobody_knew_yet_are_passed_over():
    unknown = event("moodChanged", {"mood": "sunny"})
    reply = await reply_to(
        sends(START, unknown, delta(hologram="…"), delta(text="Why?"), stop(), metadata())
    )
    assert reply.text == "Why?"


async def test_a_stream_without_counts_is_a_reply_without_counts():
    reply = await reply_to(sends(START, delta(text="Why?"), stop()))
    assert (reply.text, reply.usage) == ("Why?", Usage())


async def test_the_request_has_the_whole_conversation_and_every_parameter():
    body = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    answer = sends(START, delta(text="Why?"), stop(), metadata())
    async with (
        answering(answer) as wire,
        opened(wire.address, omit=["temperature"], additional_model_request_fields=body) as client,
    ):
        question = a_question(turn=2)
        parameters = question.parameters.model_copy(update={"top_p": 0.5})
        await client.ask(question._replace(parameters=parameters))
    assert wire.heads[0].startswith("POST /model/anthropic.claude-v9%3A0/converse-stream HTTP")
    assert wire.bodies[0] == {
        "messages": [
            {"role": "user", "content": [{"text": question.earlier_turns[0].student}]},
            {"role": "assistant", "content": [{"text": question.earlier_turns[0].tutor}]},
            {"role": "user", "content": [{"text": question.student_message}]},
        ],
        "system": [{"text": question.system_prompt}],
        "inferenceConfig": {"maxTokens": 600, "topP": 0.5},
        "additionalModelRequestFields": body,
    }
