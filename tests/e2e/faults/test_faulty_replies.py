"""One run of the command over an endpoint whose models reply with the faults of real gateways.

Every reply ends as what it is: scored, stored without a score, or failed with its class and the
words of the endpoint. No fault costs more calls than it needs.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.command import Terminal
from tests.servers.providers.listed import listed
from tests.servers.providers.raw_server import (
    STREAM_HEAD,
    Request,
    chunk,
    completion,
    response,
    serving,
)

# One run of the command for all tests, so one worker has them all.
pytestmark = pytest.mark.xdist_group("faulty replies")

PROVIDER = "openai-compatible/"
TEXT = "What could you divide 91 by?"
KEY = "sk-a-planted-secret-of-a-test"
JSON = "Content-Type: application/json"
DONE = b"data: [DONE]\n\n"
HEARTBEATS = b"data:\n\ndata: \n\n"
TRIES = 2
"""The most calls of one turn."""

CALL_SECONDS = 40
"""The most seconds of one call, an open stream's too."""


@dataclass(frozen=True)
class Faulty:
    """A model's reply, and what comes of it."""

    reply: bytes
    ends_as: str
    """The status of the response, or the class of its error."""

    calls: int = 1
    says: str = ""
    """Words of the failure; none where a response is stored."""

    routed_to: str | None = None
    text: str = TEXT
    """The text of the stored response."""

    refuses: Callable[[dict[str, Any]], bool] = lambda _: True
    """Whether a request gets `reply`; the others get a usual one."""

    options: dict[str, Any] = field(default_factory=dict)
    path: str = "/v1"
    """The end of its base_url."""

    is_scored: bool = False
    is_streamed: bool = True
    stays_open: bool = False


def streamed(*pieces: bytes) -> bytes:
    return STREAM_HEAD + b"".join(pieces)


def stopped(reason: str) -> bytes:
    return streamed(chunk(TEXT), chunk("", reason), DONE)


def error(**fields: Any) -> bytes:
    return json.dumps({"error": fields}).encode()


def event(body: bytes) -> bytes:
    return b"data: " + body + b"\n\n"


def refused(status: str, message: str, **fields: Any) -> bytes:
    return response(status, error(message=message, **fields), JSON)


def page(status: str, title: str, *headers: str) -> bytes:
    body = f"<html><head><title>{title}</title></head></html>".encode()
    return response(status, body, "Content-Type: text/html", *headers)


def needs(message: str, remedy: str, *, ends_as: str = "bad_request", **fields: Any) -> Faulty:
    """A model that refuses each request in these words, and the end of the sentence about it."""
    return Faulty(refused("400 Bad Request", message, **fields), ends_as, says=remedy)


def asks_in(role: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: any(each["role"] == role for each in body["messages"])


def sends(field_name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: field_name in body


NO_SYSTEM = refused("400 Bad Request", "System role not supported", type="BadRequestError")
OMIT = "et options: {omit: "
SYSTEM = "et options: {system_role: user}"
QUOTA = (
    "litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota, "
    "please check your plan and billing details."
)
VLLM_EXTRA = "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), 'msg': 'Extra inputs are not'}]"


LITELLM = error(message="Authentication Error, invalid key", type="None", param="None", code="401")
ON_FIRE = error(message="the model is on fire", code=503)
LOG_IN = b"<html><body>Please log in to the proxy</body></html>"

MODELS = {
    "well": Faulty(stopped("stop"), "ok", is_scored=True),
    "router": Faulty(
        streamed(event(b'{"provider": "DeepInfra", "choices": []}'), chunk(TEXT, "stop"), DONE),
        "ok",
        is_scored=True,
        routed_to="DeepInfra",
    ),
    "recitation": Faulty(stopped("content_filter: RECITATION"), "refused"),
    "safety": Faulty(stopped("SAFETY"), "refused"),
    "max-tokens": Faulty(stopped("MAX_TOKENS"), "truncated"),
    "of-next-year": Faulty(stopped("of_next_year"), "unfinished"),
    "abort": Faulty(stopped("abort"), "cut_stream", calls=TRIES, says="its stop reason is abort"),
    "litellm": Faulty(streamed(event(LITELLM)), "auth", says="Authentication Error, invalid key"),
    "heartbeats": Faulty(
        streamed(HEARTBEATS, chunk(TEXT), HEARTBEATS, chunk("", "stop"), HEARTBEATS, DONE),
        "ok",
        is_scored=True,
    ),
    "open-after-the-reason": Faulty(
        streamed(chunk(TEXT), chunk("", "stop")), "ok", is_scored=True, stays_open=True
    ),
    "page": Faulty(
        response("200 OK", LOG_IN, "Content-Type: text/html"),
        "malformed_reply",
        calls=TRIES,
        says="Please log in to the proxy",
    ),
    "error-for-a-stream": Faulty(
        response("200 OK", ON_FIRE, JSON), "overloaded", calls=TRIES, says="the model is on fire"
    ),
    "error-for-a-reply": Faulty(
        response("200 OK", ON_FIRE, JSON),
        "overloaded",
        calls=TRIES,
        says="the model is on fire",
        is_streamed=False,
    ),
    "usage-in-words": Faulty(
        response("200 OK", completion(TEXT, usage="12 tokens"), JSON),
        "ok",
        is_scored=True,
        is_streamed=False,
    ),
    "echo": Faulty(
        response("200 OK", completion(f"Why {KEY}?"), JSON),
        "ok",
        text="Why [hidden]?",
        is_scored=True,
        is_streamed=False,
    ),
    "echo-in-pieces": Faulty(
        streamed(*map(chunk, f"Why {KEY}?"), chunk("", "stop"), DONE),
        "ok",
        text="Why [hidden]?",
        is_scored=True,
    ),
    # Characters cut in two.
    "halves": Faulty(
        streamed(
            event(b'{"choices": [{"delta": {"content": "Why \\ud83d"}}]}'),
            event(b'{"choices": [{"delta": {"content": "\\ude0a?"}}]}'),
            chunk("", "stop"),
            DONE,
        ),
        "ok",
        text="Why \U0001f60a?",
        is_scored=True,
    ),
    "half-alone": Faulty(
        streamed(
            event(b'{"choices": [{"delta": {"content": "Why \\ud83d?"}}]}'), chunk("", "stop"), DONE
        ),
        "ok",
        text="Why \ufffd?",
        is_scored=True,
    ),
    "half-bytes": Faulty(
        streamed(
            event(b'{"choices": [{"delta": {"content": "Why \xf0\x9f"}}]}'),
            event(b'{"choices": [{"delta": {"content": "\x98\x8a?"}}]}'),
            chunk("", "stop"),
            DONE,
        ),
        "ok",
        text="Why \U0001f60a?",
        is_scored=True,
    ),
    # Models that need another request: what they say, and the option.
    "gemma": needs("System role not supported", SYSTEM),
    "gemma-at-google": needs(
        "Developer instruction is not enabled for models/gemma-3-1b-it", SYSTEM
    ),
    "mistral": needs("Conversation roles must alternate user/assistant/user/assistant/...", SYSTEM),
    "o1": needs(
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.", SYSTEM
    ),
    "sglang": Faulty(
        refused("500 Internal Server Error", "System role not supported"), "unknown", says=SYSTEM
    ),
    "titan": needs("This model doesn't support system messages. Try again without one.", SYSTEM),
    "temperature": needs(
        "Unsupported value: 'temperature' does not support 0.7 with this model.",
        OMIT + "[temperature]}",
        code="unsupported_value",
        param="temperature",
    ),
    "deprecated": needs("`temperature` is deprecated for this model.", OMIT + "[temperature]}"),
    "both": needs(
        "`temperature` and `top_p` cannot both be specified for this model.",
        OMIT + "[temperature]}",
    ),
    "more-tokens": needs(
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        "et options: {max_tokens_field: max_completion_tokens}",
        param="max_tokens",
    ),
    "stream-options": needs("Unknown parameter: 'stream_options'.", OMIT + "[stream_options]}"),
    "seed": needs(VLLM_EXTRA, OMIT + "[seed]}"),
    "no-stream": needs("The model is unsupported for streaming", "et options: {stream: false}"),
    "few-tokens": needs(
        "max_tokens is too large: 600. This model supports at most 512",
        "ower parameters.max_tokens",
    ),
    "unloaded": needs("No models loaded. Please load a model.", "/v1/models lists"),
    "as-user": Faulty(
        NO_SYSTEM, "ok", is_scored=True, refuses=asks_in("system"), options={"system_role": "user"}
    ),
    "without-temperature": Faulty(
        NO_SYSTEM,
        "ok",
        is_scored=True,
        refuses=sends("temperature"),
        options={"omit": ["temperature"]},
    ),
    # Addresses.
    "no-v1": Faulty(page("404 Not Found", "404"), "not_found", says="/v1", path=""),
    "whole-path": Faulty(
        page("404 Not Found", "404"),
        "not_found",
        says="/v1/chat/completions/chat/completions: remove /chat/completions from base_url",
        path="/v1/chat/completions",
    ),
    "fastapi": Faulty(
        response("404 Not Found", b'{"detail": "Not Found"}', JSON),
        "not_found",
        says="base_url should end with /v1",
        path="",
    ),
    "a-site": Faulty(
        page("405 Not Allowed", "405"), "bad_request", says="base_url should name the API itself"
    ),
    "no-such-model": Faulty(
        refused("404 Not Found", "The model `x` does not exist.", type="NotFoundError"),
        "not_found",
        says="et the option `model` to a name that http://127.0.0.1",
    ),
    "https": Faulty(
        page("400 Bad Request", "The plain HTTP request was sent to HTTPS port"),
        "bad_request",
        says="begin base_url with https://",
    ),
    "proxy-login": Faulty(
        page("407 Proxy Authentication Required", "407"), "unreachable", says="check http_proxy"
    ),
    "firewall": Faulty(
        page("403 Forbidden", "Attention Required! | Cloudflare"), "auth", says="firewall or proxy"
    ),
    # Keys and accounts.
    "expired": Faulty(
        refused("401 Unauthorized", "The access token expired"),
        "auth",
        says="renew the key in A_KEY",
    ),
    "quota": Faulty(refused("429 Too Many", QUOTA, code="429"), "auth", says="no quota or credit"),
    "credits": Faulty(
        refused("402 Payment Required", "You requested up to 600 tokens, but can only afford 12."),
        "auth",
        says="no quota or credit",
    ),
    "streams-break": Faulty(
        refused("500 Internal", "oops"), "unknown", calls=TRIES, says="set options: {stream: false}"
    ),
}


@dataclass(frozen=True)
class Outcome:
    """The run of the command, its two exports, and the calls that the server counted."""

    said: str
    responses: dict[str, dict[str, Any]]
    """The record of each model in the export of scored responses."""

    turns: dict[str, dict[str, Any]]
    """The record of each model in the export of turns."""

    calls: Counter[str]
    files: bytes
    """All that the command wrote into its folder."""


def records(terminal: Terminal, experiment_id: str, table: str) -> tuple[str, dict[str, Any]]:
    done = terminal.run("export", experiment_id, "--table", table)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return done.stdout, {each["model_id"].removeprefix(PROVIDER): each for each in found}


def run_all(terminal: Terminal, address: str, calls: Counter[str]) -> Outcome:
    models = [
        {
            "id": f"{PROVIDER}{name}",
            "base_url": f"{address}{model.path}",
            "options": {"api_key_env": "A_KEY", "stream": model.is_streamed, **model.options},
            "limits": {"timeout_seconds": CALL_SECONDS},
        }
        for name, model in MODELS.items()
    ]
    scenario = {"id": "one", "dimension": "student", "prompt": "Is 91 a prime number?"}
    config = {"models": models, "scenarios": [scenario], "repeats": 1}
    done = terminal.run("run", terminal.write("b.yaml", json.dumps(config)), "--json")
    assert done.returncode == 1, "models without a single score were not told of"
    experiment_id = json.loads(done.stdout)["experiment_id"]
    scored, responses = records(terminal, experiment_id, "responses")
    said, turns = records(terminal, experiment_id, "turns")
    files = b"".join(each.read_bytes() for each in terminal.folder.iterdir() if each.is_file())
    return Outcome(done.stdout + done.stderr + scored + said, responses, turns, calls, files)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    calls: Counter[str] = Counter()

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(request.body)
        name = asked["model"]
        calls[name] += 1
        writer.write(MODELS[name].reply if MODELS[name].refuses(asked) else stopped("stop"))
        await writer.drain()
        if MODELS[name].is_streamed and not MODELS[name].stays_open:
            writer.close()

    async def carry_out() -> Outcome:
        async with serving(answer) as server:
            environment = {
                "A_KEY": KEY,
                "SOCRATIC_RUNNER_ATTEMPTS": str(TRIES),
                "SOCRATIC_RUNNER_PATIENT_ATTEMPTS": str(TRIES),
                **listed(server.address, keys=["A_KEY"]),
            }
            terminal = Terminal(tmp_path_factory.mktemp("faulty-replies"), environment)
            return await asyncio.to_thread(run_all, terminal, server.address, calls)

    return asyncio.run(carry_out())


@pytest.mark.parametrize("name", MODELS)
def test_a_faulty_reply_ends_as_what_it_is_with_the_fewest_calls(outcome: Outcome, name: str):
    expected, scored, turn = MODELS[name], outcome.responses[name], outcome.turns[name]
    assert (scored["error_kind"] or scored["status"]) == expected.ends_as
    assert (scored["overall"] is not None) == expected.is_scored
    assert scored["routed_to"] == turn["routed_to"] == expected.routed_to
    assert outcome.calls[name] == turn["attempts"] == expected.calls
    assert expected.says in (turn["error_message"] or "")
    if not expected.says:
        assert turn["error_message"] is None
        assert turn["text"] == expected.text


def test_a_finished_reply_is_taken_long_before_its_open_stream_is_given_up(outcome: Outcome):
    turn = outcome.turns["open-after-the-reason"]
    begun, recorded = (datetime.fromisoformat(turn[each]) for each in ("created_at", "recorded_at"))
    assert (recorded - begun).total_seconds() < CALL_SECONDS / 2


def test_an_error_without_a_type_is_not_called_none(outcome: Outcome):
    assert "None" not in outcome.turns["litellm"]["error_message"]


def test_a_key_that_a_reply_repeats_is_neither_shown_nor_stored(outcome: Outcome):
    assert KEY not in outcome.said
    assert b"[hidden]" in outcome.files
    assert KEY.encode() not in outcome.files
