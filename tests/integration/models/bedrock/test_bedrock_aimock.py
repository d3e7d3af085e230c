"""Bedrock as aimock imitates it, with faults.

Amazon's library cannot read aimock's streams, since aimock begins every block with an empty part.
aimock also omits the reason of a fault that Amazon gives.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from socratic_bench.domain.experiment.manifest import Limits
from socratic_bench.errors import FailureKind
from socratic_bench.scoring.exchange import Status
from socratic_bench.testing.samples import a_question
from tests.integration.models.bedrock.bedrock_wire import isolate
from tests.integration.models.conftest import OpenModel, failure_of
from tests.servers.providers import aimock

pytestmark = pytest.mark.connected

BOTH_WAYS = pytest.mark.parametrize("stream", [True, False])


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path, {"AWS_BEARER_TOKEN_BEDROCK": aimock.KEY})


@pytest.fixture
async def address(monkeypatch: pytest.MonkeyPatch) -> None:
    """None, which stands for AWS's own address: no other one gets a bearer token.

    The environment leads AWS's library to aimock instead.
    """
    address = await asyncio.to_thread(aimock.SERVER.address)
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", address)


async def test_aimock_is_understood(open_model: OpenModel, address: None):
    reply = await open_model("bedrock/well", address, stream=False).ask(a_question())
    assert (reply.text, reply.status) == (aimock.TEXT, Status.OK)
    assert (reply.usage.input_tokens, reply.usage.visible_output_tokens) == (42, 11)


async def test_a_reply_at_the_token_limit_is_truncated(open_model: OpenModel, address: None):
    reply = await open_model("bedrock/cut-off", address, stream=False).ask(a_question())
    assert (reply.status, reply.stop_reason) == (Status.TRUNCATED, "max_tokens")


@BOTH_WAYS
async def test_too_many_requests_wait_as_long_as_they_are_told(
    open_model: OpenModel, address: None, stream: bool
):
    failure = await failure_of(open_model("bedrock/limited", address, stream=stream))
    assert (failure.kind, failure.retry_after) == (FailureKind.RATE_LIMITED, 7.0)
    assert "HTTP 429" in str(failure)


@BOTH_WAYS
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("overloaded", FailureKind.OVERLOADED),
        ("disconnecting", FailureKind.UNREACHABLE),
    ],
)
async def test_a_fault_is_a_failure_of_its_class(
    open_model: OpenModel, address: None, stream: bool, name: str, kind: FailureKind
):
    failure = await failure_of(open_model(f"bedrock/{name}", address, stream=stream))
    assert failure.kind == kind


async def test_a_reply_that_is_no_json_is_malformed(open_model: OpenModel, address: None):
    failure = await failure_of(open_model("bedrock/malformed", address, stream=False))
    assert failure.kind == FailureKind.MALFORMED_REPLY


async def test_a_stream_that_does_not_begin_is_given_up(open_model: OpenModel, address: None):
    limits = Limits(first_byte_timeout_seconds=0.2)
    failure = await failure_of(open_model("bedrock/hanging", address, limits=limits))
    assert failure.kind == FailureKind.TIMEOUT


@BOTH_WAYS
async def test_a_wrong_key_is_told_of(
    open_model: OpenModel, address: None, stream: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "some-other-key")
    failure = await failure_of(open_model("bedrock/well", address, stream=stream))
    assert failure.kind == FailureKind.AUTH
    assert "some-other-key" not in str(failure)
