"""Every fault that servers written to test clients can inject, in both wire formats."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from socratic_bench.domain.experiment.manifest import Limits
from socratic_bench.errors import FailureKind, FaultScope, ModelUnusable
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import a_question
from tests.integration.models.conftest import OpenModel, failure_of
from tests.servers.providers import aimock, llmock

pytestmark = pytest.mark.connected

IMPATIENT = Limits(first_byte_timeout_seconds=0.2)
LONGER_SECONDS = 2.5
"""Seconds of a pause: more than PATIENT allows for the first byte."""

PATIENT = Limits(first_byte_timeout_seconds=2)
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])
BOTH_WAYS = pytest.mark.parametrize("stream", [True, False])


async def at_llmock(provider: str, *behaviours: dict[str, Any]) -> tuple[str, str]:
    """A model's id and base URL, whose next calls meet these behaviours."""
    await asyncio.to_thread(llmock.script, *behaviours)
    address = await asyncio.to_thread(llmock.SERVER.address)
    path = "/anthropic" if provider == "anthropic" else "/v1"
    return f"{provider}/some-model", f"{address}{path}"


async def at_aimock(provider: str, name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setenv("AIMOCK_KEY", aimock.KEY)
    address = await asyncio.to_thread(aimock.SERVER.address)
    return f"{provider}/{name}", address if provider == "anthropic" else f"{address}/v1"


def fail(status: int, **more: Any) -> dict[str, Any]:
    return {"type": "fail", "status": status, "message": f"I fail with {status}.", **more}


def fault(kind: str) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": 2}


@PROVIDERS
@BOTH_WAYS
async def test_llmock_is_understood(open_model: OpenModel, provider: str, stream: bool):
    reply = await open_model(*await at_llmock(provider), stream=stream).ask(a_question())
    assert reply.text
    assert reply.status is Status.OK
    assert reply.usage.visible_output_tokens
    assert reply.usage.input_tokens
    assert (reply.first_token_ms is not None) == stream


@pytest.mark.long
@PROVIDERS
@BOTH_WAYS
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.BAD_REQUEST),
        (401, FailureKind.AUTH),
        (403, FailureKind.AUTH),
        (404, FailureKind.NOT_FOUND),
        (422, FailureKind.BAD_REQUEST),
        (429, FailureKind.RATE_LIMITED),
        (500, FailureKind.UNKNOWN),
        (503, FailureKind.OVERLOADED),
        (504, FailureKind.TIMEOUT),
        (529, FailureKind.OVERLOADED),
    ],
)
async def test_a_status_is_a_kind_and_its_message_is_kept(
    open_model: OpenModel, provider: str, stream: bool, status: int, kind: FailureKind
):
    model = await at_llmock(provider, fail(status))
    failure = await failure_of(open_model(*model, stream=stream))
    assert failure.kind == kind
    assert f"HTTP {status}" in str(failure)
    assert f"I fail with {status}." in str(failure)
    assert isinstance(failure, ModelUnusable) == (status in {401, 403, 404})
    # Nothing says that a 400 or 422 is not about this one conversation.
    of_this_one = failure.scope is FaultScope.CONVERSATION
    assert of_this_one == (status in {400, 422})


@pytest.mark.long
@PROVIDERS
async def test_the_wait_that_is_asked_for_is_passed_on(open_model: OpenModel, provider: str):
    client = open_model(*await at_llmock(provider, fail(429, retry_after=2.5)))
    assert (await failure_of(client)).retry_after == 2.5


@pytest.mark.long
@PROVIDERS
async def test_one_ask_is_one_call_and_the_next_may_do_well(open_model: OpenModel, provider: str):
    client = open_model(*await at_llmock(provider, fail(503, times=2)))
    for calls in (1, 2):
        assert (await failure_of(client)).kind == FailureKind.OVERLOADED
        assert len(await asyncio.to_thread(llmock.requests)) == calls
    assert (await client.ask(a_question())).text


@PROVIDERS
@pytest.mark.parametrize(
    ("kind_of_fault", "kind"),
    [
        ("disconnect", FailureKind.CUT_STREAM),
        ("truncate", FailureKind.CUT_STREAM),
        ("malformed", FailureKind.MALFORMED_REPLY),
    ],
)
async def test_a_broken_stream_is_no_reply(
    open_model: OpenModel, provider: str, kind_of_fault: str, kind: FailureKind
):
    client = open_model(*await at_llmock(provider, fault(kind_of_fault)))
    failure = await failure_of(client)
    assert (failure.kind, failure.retryable) == (kind, True)
    assert (await client.ask(a_question())).text


@pytest.mark.long
@PROVIDERS
@pytest.mark.parametrize("behaviour", ["delay", "slow_first_token"])
async def test_a_first_byte_that_comes_too_late_is_not_waited_for(
    open_model: OpenModel, provider: str, behaviour: str
):
    model = await at_llmock(provider, {"type": behaviour, "seconds": 20})
    failure = await failure_of(open_model(*model, limits=IMPATIENT))
    assert failure.kind == FailureKind.TIMEOUT
    assert "no first byte within 0.2 s" in str(failure)


@pytest.mark.long
@PROVIDERS
async def test_a_pause_within_a_stream_is_waited_for(open_model: OpenModel, provider: str):
    pause = {**fault("stall"), "stall_seconds": LONGER_SECONDS}
    reply = await open_model(*await at_llmock(provider, pause), limits=PATIENT).ask(a_question())
    assert reply.status is Status.OK
    assert reply.latency_ms is not None
    assert reply.latency_ms >= 1000 * LONGER_SECONDS


@pytest.mark.long
@PROVIDERS
async def test_a_reply_that_comes_whole_has_no_first_byte_to_wait_for(
    open_model: OpenModel, provider: str
):
    model = await at_llmock(provider, {"type": "delay", "seconds": 0.5})
    reply = await open_model(*model, limits=IMPATIENT, stream=False).ask(a_question())
    assert reply.latency_ms is not None
    assert reply.latency_ms >= 500


@PROVIDERS
@BOTH_WAYS
@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("well", Status.OK, {"stop", "end_turn"}),
        ("cut-off", Status.TRUNCATED, {"length", "max_tokens"}),
        ("reasoning", Status.OK, {"stop", "end_turn"}),
        ("slow", Status.OK, {"stop", "end_turn"}),
    ],
)
async def test_aimock_is_understood(
    open_model: OpenModel, monkeypatch, provider, stream, name, status, reason
):
    model = await at_aimock(provider, name, monkeypatch)
    client = open_model(*model, stream=stream, key_variable="AIMOCK_KEY")
    reply = await client.ask(a_question())
    assert (reply.text, reply.status) == (aimock.TEXT, status)
    assert reply.stop_reason in reason
    if name == "well":
        assert (reply.usage.input_tokens, reply.usage.visible_output_tokens) == (42, 11)
    if name == "reasoning":
        assert reply.usage.visible_output_tokens is None


async def test_a_filtered_answer_is_a_refusal(open_model: OpenModel, monkeypatch):
    model = await at_aimock("openai", "filtered", monkeypatch)
    reply = await open_model(*model, key_variable="AIMOCK_KEY").ask(a_question())
    assert (reply.text, reply.status) == ("No.", Status.REFUSED)


@pytest.mark.long
@PROVIDERS
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("limited", {FailureKind.RATE_LIMITED}),
        ("overloaded", {FailureKind.OVERLOADED}),
        ("broke", {FailureKind.AUTH}),
        ("malformed", {FailureKind.MALFORMED_REPLY}),
        ("disconnecting", {FailureKind.UNREACHABLE}),
        ("hanging", {FailureKind.TIMEOUT}),
        ("lost-stream", {FailureKind.CUT_STREAM}),
        # It resets the connection, and what it had sent may be lost with it.
        ("truncated-stream", {FailureKind.CUT_STREAM, FailureKind.UNREACHABLE}),
    ],
)
async def test_the_faults_of_aimock_have_their_kinds(
    open_model: OpenModel, monkeypatch, provider: str, name: str, kinds: set[FailureKind]
):
    model = await at_aimock(provider, name, monkeypatch)
    limits = IMPATIENT if name == "hanging" else Limits()
    client = open_model(*model, key_variable="AIMOCK_KEY", limits=limits)
    failure = await failure_of(client)
    assert failure.kind in kinds
    assert aimock.KEY not in str(failure)
    if name == "limited":
        assert failure.retry_after == 7
        assert "Slow down, please." in str(failure)


@PROVIDERS
async def test_a_server_that_wants_a_key_does_not_get_the_usual_one(
    open_model: OpenModel, monkeypatch, provider: str
):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, aimock.KEY)
    model = await at_aimock(provider, "well", monkeypatch)
    assert (await failure_of(open_model(*model))).kind == FailureKind.AUTH
