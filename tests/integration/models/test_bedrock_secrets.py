"""Credentials for Bedrock: sent where they belong, and shown nowhere."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from socratic_bench.errors import ModelCallFailed, ModelUnusable
from tests.contract.models.questions import a_question
from tests.integration.models.bedrock_wire import (
    SECRETS,
    answering,
    failure_of,
    isolate,
    opened,
    responds,
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate(monkeypatch, tmp_path, SECRETS)


async def test_an_api_key_for_bedrock_is_sent_instead_of_a_signature(monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-planted")
    async with (
        answering(responds(400, {"message": "Bearer bedrock-api-key-planted is no good"})) as wire,
        opened(wire.address) as client,
    ):
        with pytest.raises(ModelCallFailed) as failure:
            await client.ask(a_question())
    assert "Authorization: Bearer bedrock-api-key-planted" in wire.heads[0]
    assert "planted" not in str(failure.value)
    assert "is no good" in str(failure.value)


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
    said = f"The Canonical String should have been {every} {{head}} END"
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
    assert len(str(failure)) < 1200


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
