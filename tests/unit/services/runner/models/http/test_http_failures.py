"""The classes of a provider's errors, and the parts of them that messages may repeat."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.errors import FailureKind, ModelCallFailed, ModelUnusable
from socratic_runner.conversations.call_outcomes import PASSING, UNUSABLE
from socratic_runner.models.http.diagnosis import Called
from socratic_runner.models.http.failures import LONGEST_MESSAGE, Failures
from socratic_runner.models.http.keys import Key

SECRET = "sk-Zt/9+q=very-secret"
FAILURES = Failures("openai at https://api.openai.com", Key(SECRET))


def answered(status: int, error: object, **headers: str) -> ModelCallFailed:
    body = json.dumps({"error": error}).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return FAILURES.answered(status, sent, body)


@pytest.mark.parametrize(
    ("status", "body", "kind", "end"),
    [
        # Refusals of one conversation: Cloudflare's and Portkey's gateways, LiteLLM, Zhipu.
        (424, {"error": [{"code": 2016, "message": "Prompt blocked due to X"}]}, "refused", "X"),
        (446, {"error": {"message": "checks failed", "type": "hooks_failed"}}, "refused", "failed"),
        (400, {"error": {"message": "Violated guardrail policy"}}, "refused", "policy"),
        (
            400,
            {"error": {"message": "The system detected potentially unsafe or sensitive content"}},
            "refused",
            "content",
        ),
        # Models that need another request, or are none for a chat.
        (
            404,
            "This is not a chat model",
            "not_found",
            "take a model that answers chat completions",
        ),
        (400, '"x" does not support chat', "bad_request", "that answers chat completions"),
        (400, "default chat template is no longer allowed", "bad_request", "follows instructions"),
        (
            400,
            "`temperature` may only be set to 1 when thinking is enabled",
            "bad_request",
            "{omit: [temperature]}",
        ),
        (422, "`top_p` must be > 0.0 and < 1.0", "bad_request", "{omit: [top_p]}"),
        (
            400,
            "max_tokens: 600 > 512, which is the maximum allowed number",
            "bad_request",
            "lower parameters.max_tokens",
        ),
        (400, "This model only support stream mode", "bad_request", "{stream: true}"),
        (
            400,
            "parameter.enable_thinking must be set to false for non-streaming calls",
            "bad_request",
            "{extra_body: {enable_thinking: false}}",
        ),
        (
            500,
            "model requires more system memory (5.6 GiB) than is available",
            "unknown",
            "load a smaller model",
        ),
        (
            404,
            "No endpoints found matching your data policy",
            "not_found",
            "provider of this model",
        ),
        (400, "LLM Provider NOT provided. You passed model=m", "bad_request", "/v1/models lists"),
        # The way to the server.
        (200, {"error": "Unexpected endpoint or method. (POST /x)"}, "not_found", "web page"),
        (530, "error code: 1033", "overloaded", "start the server, and the tunnel to it"),
        (404, "<html>ERR_NGROK_3200</html>", "not_found", "start the server, and the tunnel to it"),
        (403, {"message": "Missing Authentication Token"}, "auth", "web page"),
        (400, "User location is not supported", "bad_request", "call it from another region"),
        (400, "API version not supported", "bad_request", "which takes no api-version"),
        # Gateways before a server that fails, and their budgets.
        (500, "AnthropicError - Overloaded", "overloaded", "Overloaded"),
        (500, "Cannot connect to host localhost:11434", "overloaded", "localhost:11434"),
        (412, "Budget exhausted", "auth", "use another key"),
        (403, "user quota is not enough", "auth", "use another key"),
    ],
)
def test_words_of_servers_lead_to_the_class_and_the_remedy(status, body, kind, end):
    called = Called("https://llm.example.org/v1/chat/completions", is_streamed=True)
    failures = Failures("x", None, called=called)
    if isinstance(body, str) and not body.startswith("<") and status != 530:
        body = {"error": {"message": body}}
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    failure = failures.reported(body) if status == 200 else failures.answered(status, {}, raw)
    assert failure.kind == kind
    assert str(failure).endswith(end)
    # A retry helps against overload alone.
    assert failure.retryable == (kind == FailureKind.OVERLOADED)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, {"message": "temperature is not supported"}, FailureKind.BAD_REQUEST),
        (400, {"code": "context_length_exceeded"}, FailureKind.CONTEXT_TOO_LONG),
        (400, {"type": "exceed_context_size_error"}, FailureKind.CONTEXT_TOO_LONG),
        (
            400,
            {"type": "invalid_request_error", "message": "prompt is too long: 9 > 5 maximum"},
            FailureKind.CONTEXT_TOO_LONG,
        ),
        (
            400,
            {"message": "This model's maximum context length is 4096 tokens."},
            FailureKind.CONTEXT_TOO_LONG,
        ),
        (400, {"code": "content_filter"}, FailureKind.REFUSED),
        (
            400,
            {"code": "BadRequest", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
            FailureKind.REFUSED,
        ),
        (403, {"message": "Your input was flagged", "code": 403}, FailureKind.REFUSED),
        (
            400,
            {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to access the Anthropic API.",
            },
            FailureKind.AUTH,
        ),
        (401, {"type": "invalid_request_error", "code": "invalid_api_key"}, FailureKind.AUTH),
        (402, {"message": "Insufficient Balance"}, FailureKind.AUTH),
        (403, {"type": "permission_error"}, FailureKind.AUTH),
        (404, {"type": "invalid_request_error"}, FailureKind.NOT_FOUND),
        (405, {}, FailureKind.BAD_REQUEST),
        (408, {}, FailureKind.TIMEOUT),
        (409, {}, FailureKind.OVERLOADED),
        (413, {"type": "request_too_large"}, FailureKind.CONTEXT_TOO_LONG),
        (422, {"message": "seed: Extra inputs are not permitted"}, FailureKind.BAD_REQUEST),
        (425, {}, FailureKind.OVERLOADED),
        (429, {"type": "rate_limit_error"}, FailureKind.RATE_LIMITED),
        (429, {"message": "You exceeded your current quota"}, FailureKind.RATE_LIMITED),
        (429, {"type": "insufficient_quota"}, FailureKind.AUTH),
        (
            429,
            {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}},
            FailureKind.AUTH,
        ),
        (500, {"type": "api_error"}, FailureKind.UNKNOWN),
        (502, {}, FailureKind.OVERLOADED),
        (503, {}, FailureKind.OVERLOADED),
        (504, {}, FailureKind.TIMEOUT),
        (524, {}, FailureKind.TIMEOUT),
        (529, {"type": "overloaded_error"}, FailureKind.OVERLOADED),
        (599, {}, FailureKind.UNKNOWN),
    ],
)
def test_an_error_has_the_kind_of_its_code_its_words_and_its_status(status, error, kind):
    failure = answered(status, error)
    assert failure.kind == kind
    assert failure.retryable == (kind in PASSING)
    assert isinstance(failure, ModelUnusable) == (kind in UNUSABLE)
    assert f"answered HTTP {status}" in str(failure)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, FailureKind.OVERLOADED),
        ({"type": "rate_limit_error"}, FailureKind.RATE_LIMITED),
        ({"type": "authentication_error"}, FailureKind.AUTH),
        ({"type": "invalid_request_error"}, FailureKind.BAD_REQUEST),
        ({"type": "timeout_error"}, FailureKind.TIMEOUT),
        ({"type": "api_error"}, FailureKind.UNKNOWN),
        ({"code": 429, "message": "Provider returned error"}, FailureKind.RATE_LIMITED),
        ({"code": 502}, FailureKind.OVERLOADED),
        ({"code": 12}, FailureKind.UNKNOWN),
        ("something broke", FailureKind.UNKNOWN),
        ("the prompt exceeds the context window", FailureKind.CONTEXT_TOO_LONG),
    ],
)
def test_an_error_within_a_reply_has_the_same_kinds(error, kind):
    assert FAILURES.reported({"error": error}).kind == kind


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "Too fast.", "type": "x"}}', "(x): Too fast."),
        (b'[{"error": {"message": "Too fast.", "status": "X"}}]', "(X): Too fast."),
        (b'{"error": "Too fast."}', ": Too fast."),
        (b'{"object": "error", "message": "Too fast."}', ": Too fast."),
        (b'{"message": {"detail": [{"msg": "Too fast."}]}}', '{"detail": [{"msg": "Too fast."}]}'),
        (b'{"detail": "Too fast."}', ": Too fast."),
        (b"<h1>Too\r\n\x1b[31m fast.</h1>", "<h1>Too [31m fast.</h1>"),
        (
            b'{"error": {"message": "Provider error", "metadata": {"raw": "Too fast."}}}',
            ": Provider error: Too fast.",
        ),
        (b"", "answered HTTP 429"),
        (b"[" * 100_000, ": [[["),
    ],
)
def test_the_providers_message_is_kept_on_one_line(body: bytes, message: str):
    failure = FAILURES.answered(429, {}, body)
    assert message in str(failure)
    assert str(failure).isprintable()


@given(text=st.text(max_size=3000))
def test_no_message_is_long_or_has_more_than_a_line(text: str):
    message = str(answered(503, {"message": text}))
    assert len(message) < LONGEST_MESSAGE + 200
    assert message.isprintable()


def test_a_provider_says_how_long_to_wait_and_whether_to_try_again():
    assert answered(429, {}, Retry_After="7").retry_after == 7
    assert answered(401, {}, Retry_After="7").retry_after is None
    assert not answered(503, {}, x_should_retry="false").retryable
    googles = {"details": [{"@type": "…/Help"}, {"@type": "…/RetryInfo", "retryDelay": "34.5s"}]}
    assert answered(429, googles).retry_after == 34.5


def test_a_redirect_is_told_without_its_query():
    failure = FAILURES.answered(308, {"Location": "https://elsewhere/v1?token=abc"}, b"")
    assert failure.kind == FailureKind.BAD_REQUEST
    assert "https://elsewhere/v1" in str(failure)
    assert "abc" not in str(failure)


PLACES = st.sampled_from(["message", "type", "code", "status", "detail", "other"])


@given(place=PLACES, before=st.text(max_size=1100), after=st.text(max_size=20))
def test_the_key_is_nowhere_in_a_message(place: str, before: str, after: str):
    error = {place: f"{before}{SECRET}{after}"}
    for failure in (answered(429, error), answered(401, error), FAILURES.reported(error)):
        assert SECRET[:9] not in str(failure)
        assert SECRET[-9:] not in repr(failure)


@pytest.mark.parametrize(
    "echo",
    [
        SECRET,
        "sk-Zt%2F9%2Bq%3Dvery-secret",
        "sk-Zt%2f9%2Bq=very-secret",
        r"sk-Zt\/9\u002Bq=very-secret",
        r"sk-Zt\u002f9%2Bq\u003dvery\u002dsecret",
        f"Authorization: Bearer {SECRET}",
        "{'Authorization': 'Bearer another-very-secret1'}",
        "x-api-key=another-very-secret",
        '"x-api-key": "another-very-secret"',
        "sent with bearer another-very-secret1",
    ],
)
def test_what_looks_like_a_key_is_hidden_too(echo: str):
    assert "very-secret" not in str(FAILURES.answered(400, {}, f"you sent {echo}, so".encode()))


def test_ordinary_words_are_not_hidden():
    said = "You must provide a Bearer authentication header, and your key: see the docs."
    assert said in str(answered(401, {"message": said}))


def test_a_key_shows_itself_only_when_told_to():
    key = Key(SECRET)
    assert SECRET not in f"{key} {key!r} {FAILURES!r} {vars(FAILURES)}"
    assert key.reveal() == SECRET
