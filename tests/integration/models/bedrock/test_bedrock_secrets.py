"""Credentials for Bedrock: sent where they belong, and shown nowhere."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import (
    FailureKind,
    MissingCredential,
    ModelCallFailed,
    ModelUnusable,
    UnlistedEndpoint,
)
from socratic_bench.providers.base_urls import origin
from socratic_bench.providers.endpoints import ANYWHERE, Endpoint, Endpoints
from socratic_bench.testing.samples import a_question
from socratic_runner.models.registry import open_client
from tests.integration.models.bedrock.bedrock_wire import (
    SECRETS,
    answering,
    failure_of,
    isolate,
    opened,
    reply_to,
    responds,
)

BEARER = "bedrock-api-key-planted"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path, SECRETS)


async def test_an_api_key_for_bedrock_is_sent_instead_of_a_signature(monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", BEARER)
    async with answering(responds(400, {"message": f"Bearer {BEARER} is no good"})) as wire:
        # Where AWS itself is, as the operator's own environment says.
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", wire.address)
        async with opened(None) as client:
            with pytest.raises(ModelCallFailed) as failure:
                await client.ask(a_question())
    assert f"Authorization: Bearer {BEARER}" in wire.heads[0]
    assert "planted" not in str(failure.value)
    assert "is no good" in str(failure.value)


@pytest.mark.parametrize("stream", [True, False])
async def test_no_bearer_token_goes_to_an_address_that_is_not_awss_own(monkeypatch, stream):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", BEARER)
    monkeypatch.setenv("AWS_AUTH_SCHEME_PREFERENCE", "httpBearerAuth")
    async with (
        answering(responds(400, {"message": "No."})) as wire,
        opened(wire.address, stream=stream) as client,
    ):
        with pytest.raises(ModelCallFailed):
            await client.ask(a_question())
    assert "Authorization: AWS4-HMAC-SHA256" in wire.heads[0]
    assert "Bearer" not in wire.heads[0]
    assert "planted/secret" not in wire.heads[0]


def test_a_bearer_token_alone_leads_to_no_other_address(monkeypatch):
    for name in SECRETS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", BEARER)
    model = TutorModel(id="bedrock/x", base_url="http://127.0.0.1:1")
    endpoints = Endpoints((Endpoint("there", "http://127.0.0.1:1", aws=True),))
    with pytest.raises(MissingCredential, match="is sent to AWS's own addresses only"):
        open_client(model, endpoints=endpoints)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:1",
        "http://bedrock-runtime.us-east-1.amazonaws.com",
        "https://bedrock-runtime.us-east-1.amazonaws.com.evil.example",
        "https://evil.s3.amazonaws.com",
        "https://bedrock-runtime.evil.example/.us-east-1.amazonaws.com",
    ],
)
def test_nothing_is_signed_for_an_address_that_nobody_has_listed(base_url):
    model = TutorModel(id="bedrock/x", base_url=base_url)
    listed = Endpoint("there", origin(base_url))  # but not for AWS credentials
    for endpoints in (Endpoints(), ANYWHERE, Endpoints((listed,))):
        with pytest.raises(UnlistedEndpoint, match=r'may not be called signed .* "aws": true'):
            open_client(model, endpoints=endpoints)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_redirect_is_not_followed_with_a_sessions_token(stream):
    async with answering(responds(400, {"message": "No."})) as elsewhere:
        answer = responds(307, "", {"Location": f"{elsewhere.address}/model/x/converse"})
        failure = await failure_of(answer, stream=stream)
        assert elsewhere.heads == []
    assert (failure.kind, failure.retryable) == (FailureKind.BAD_REQUEST, False)


async def test_what_a_server_repeats_in_its_answer_is_hidden():
    said = f"Is {SECRETS['AWS_SESSION_TOKEN']} yours?"
    answer = {
        "output": {"message": {"role": "assistant", "content": [{"text": said}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
        "metrics": {"latencyMs": 5},
    }
    reply = await reply_to(responds(200, answer), stream=False)
    assert reply.text == "Is [hidden] yours?"


async def test_a_name_that_leads_to_the_metadata_of_a_cloud_is_not_followed(monkeypatch):
    def resolve(_host, port, *_, **__):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with opened("http://vpce.example:80") as client:
        with pytest.raises(ModelCallFailed, match="is never called") as failure:
            await client.ask(a_question())
    assert (failure.value.kind, failure.value.retryable) == (FailureKind.BAD_REQUEST, False)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "InvalidSignatureException"),
        (400, "ValidationException"),
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (302, "Moved"),
    ],
)
async def test_no_message_and_no_log_holds_a_credential_that_a_server_repeats(
    status, code, stream, caplog, monkeypatch
):
    caplog.set_level(logging.DEBUG)
    # As a program leaves it that has set logging up its own way; those below it speak on.
    monkeypatch.setattr(logging.getLogger("botocore"), "disabled", True)
    logging.getLogger("botocore").setLevel(logging.NOTSET)
    every = " ".join(SECRETS.values())
    said = f"The Canonical String is {every} {{head}} END"
    answer = responds(status, {"message": said}, {"x-amzn-ErrorType": code})
    with capture_logs() as logs:
        failure = await failure_of(answer, stream=stream)
    told = f"{failure!r} {failure} {failure.__cause__!r} {logs} {caplog.text}"
    assert failure.__suppress_context__
    assert "The Canonical String" in told
    for secret in SECRETS.values():
        assert secret not in told
    assert "Signature=" not in told or "Signature=[hidden]" in told
    assert "\n" not in str(failure)
    assert len(str(failure)) < 400


async def test_credentials_that_are_in_no_environment_are_hidden_too(monkeypatch, tmp_path):
    for name in SECRETS:
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = AKIAFROMAPROFILE0123\n"
        "aws_secret_access_key = from-a-profile\naws_session_token = token-from-a-profile\n"
    )
    answer = responds(403, {"message": "It should have been {head} END"})
    failure = await failure_of(answer)
    assert isinstance(failure, ModelUnusable)
    for secret in ("AKIAFROMAPROFILE0123", "token-from-a-profile"):
        assert secret not in str(failure)
