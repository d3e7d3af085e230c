"""The classes of Bedrock's errors."""

from __future__ import annotations

import aiohttp
import botocore.eventstream
import botocore.exceptions as aws
import botocore.parsers
import pytest

from socratic_bench.errors import FailureKind, ModelUnusable
from socratic_runner.conversations.call_outcomes import PASSING, UNUSABLE
from socratic_runner.models.aws.failures import failure_of, kind_of

CODES = [
    ("ThrottlingException", 429, FailureKind.RATE_LIMITED),
    ("ThrottlingException", 400, FailureKind.RATE_LIMITED),
    ("TooManyRequestsException", 429, FailureKind.RATE_LIMITED),
    ("ServiceQuotaExceededException", 400, FailureKind.RATE_LIMITED),
    ("429", 429, FailureKind.RATE_LIMITED),
    ("ServiceUnavailableException", 503, FailureKind.OVERLOADED),
    ("ModelNotReadyException", 429, FailureKind.OVERLOADED),
    ("InternalServerException", 500, FailureKind.OVERLOADED),
    ("503", 503, FailureKind.OVERLOADED),
    ("ModelTimeoutException", 408, FailureKind.TIMEOUT),
    ("504", 504, FailureKind.TIMEOUT),
    ("ModelErrorException", 424, FailureKind.UNKNOWN),
    ("ModelStreamErrorException", 424, FailureKind.CUT_STREAM),
    ("modelStreamErrorException", 400, FailureKind.CUT_STREAM),
    ("AccessDeniedException", 403, FailureKind.AUTH),
    ("UnrecognizedClientException", 403, FailureKind.AUTH),
    ("ExpiredTokenException", 403, FailureKind.AUTH),
    ("InvalidSignatureException", 403, FailureKind.AUTH),
    ("SignatureDoesNotMatch", 403, FailureKind.AUTH),
    ("401", 401, FailureKind.AUTH),
    ("ResourceNotFoundException", 404, FailureKind.NOT_FOUND),
    ("ValidationException", 400, FailureKind.BAD_REQUEST),
    ("SomethingNew", 500, FailureKind.UNKNOWN),
    ("SomethingNew", 400, FailureKind.BAD_REQUEST),
    ("", None, FailureKind.UNKNOWN),
]
MESSAGES = [
    ("Input is too long for requested model.", FailureKind.CONTEXT_TOO_LONG),
    ("prompt is too long: 903884 tokens > 200000 maximum", FailureKind.CONTEXT_TOO_LONG),
    (
        "input length and `max_tokens` exceed context limit: 198153 + 8192 > 200000",
        FailureKind.CONTEXT_TOO_LONG,
    ),
    (
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
        FailureKind.CONTEXT_TOO_LONG,
    ),
    ("too many total text bytes: 26000000 > 25000000", FailureKind.CONTEXT_TOO_LONG),
    ("Output blocked by content filtering policy: content filter", FailureKind.REFUSED),
    ("The provided model identifier is invalid.", FailureKind.BAD_REQUEST),
    (
        "The maximum tokens you requested exceeds the model limit of 4096.",
        FailureKind.BAD_REQUEST,
    ),
]


@pytest.mark.parametrize(("code", "status", "kind"), CODES)
def test_a_code_says_more_than_a_status(code, status, kind):
    assert kind_of(code, status, "Sorry.") == kind


@pytest.mark.parametrize(("message", "kind"), MESSAGES)
def test_a_validation_error_is_told_apart_by_its_message(message, kind):
    assert kind_of("ValidationException", 400, message) == kind
    assert kind_of("validationException", 400, message) == kind  # within a stream


EXCEPTIONS = [
    (aws.EndpointConnectionError(endpoint_url="https://x"), FailureKind.UNREACHABLE),
    (aws.ConnectTimeoutError(endpoint_url="https://x"), FailureKind.UNREACHABLE),
    (aws.SSLError(endpoint_url="https://x", error="bad"), FailureKind.UNREACHABLE),
    (aws.ProxyConnectionError(proxy_url="https://p"), FailureKind.UNREACHABLE),
    (aws.ConnectionClosedError(endpoint_url="https://x"), FailureKind.UNREACHABLE),
    (
        aws.ConnectionClosedError(endpoint_url="https://x", error=aiohttp.ClientPayloadError()),
        FailureKind.CUT_STREAM,
    ),
    (aws.ReadTimeoutError(endpoint_url="https://x"), FailureKind.TIMEOUT),
    (aws.NoCredentialsError(), FailureKind.AUTH),
    (aws.PartialCredentialsError(provider="env", cred_var="x"), FailureKind.AUTH),
    (aws.CredentialRetrievalError(provider="process", error_msg="x"), FailureKind.AUTH),
    (aws.TokenRetrievalError(provider="sso", error_msg="x"), FailureKind.AUTH),
    (aws.SSOTokenLoadError(error_msg="x"), FailureKind.AUTH),
    (aws.UnauthorizedSSOTokenError(), FailureKind.AUTH),
    (aws.LoginRefreshRequired(), FailureKind.AUTH),
    (aws.ProfileNotFound(profile="x"), FailureKind.AUTH),
    (aws.ParamValidationError(report="x"), FailureKind.BAD_REQUEST),
    (aws.InvalidRegionError(region_name="x"), FailureKind.BAD_REQUEST),
    (aws.EndpointResolutionError(msg="x"), FailureKind.BAD_REQUEST),
    (aws.BotoCoreError(), FailureKind.UNKNOWN),
    (botocore.eventstream.ChecksumMismatch(1, 2), FailureKind.MALFORMED_REPLY),
    (botocore.parsers.ResponseParserError("x"), FailureKind.MALFORMED_REPLY),
    (TimeoutError(), FailureKind.TIMEOUT),
    (aiohttp.SocketTimeoutError(), FailureKind.TIMEOUT),
    (aiohttp.ClientPayloadError(), FailureKind.CUT_STREAM),
    (ConnectionResetError(), FailureKind.CUT_STREAM),
]


@pytest.mark.parametrize(("error", "kind"), EXCEPTIONS, ids=lambda value: type(value).__name__)
def test_an_exception_is_a_failure_of_its_class_with_a_message(error, kind):
    failure = failure_of(error)
    assert failure.kind == kind
    assert failure.retryable == (kind in PASSING)
    assert isinstance(failure, ModelUnusable) == (kind in UNUSABLE)
    assert not str(failure).endswith((":", " "))


@pytest.mark.parametrize("error", [KeyError("x"), AttributeError("x"), RuntimeError("x")])
def test_a_mistake_of_ours_is_no_failure_of_bedrocks(error):
    assert failure_of(error) is None


def test_a_long_message_is_kept_on_one_line_and_not_whole():
    response = {
        "Error": {"Code": "ValidationException", "Message": "no\r\nway\x00 " + "z" * 9000},
        "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {"retry-after": "nonsense"}},
    }
    failure = failure_of(aws.ClientError(response, "Converse"))
    assert str(failure).startswith("Bedrock answered HTTP 400 (ValidationException): no way zzz")
    assert len(str(failure)) < 1200
    assert failure.retry_after is None
