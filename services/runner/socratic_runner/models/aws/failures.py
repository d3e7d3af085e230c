"""Classifies failed calls to Bedrock: errors of AWS, of botocore and of the network."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final

from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_runner.models.access import refused_address
from socratic_runner.models.aws.access import BEARER_VARIABLE
from socratic_runner.models.http import failures as http_failures
from socratic_runner.models.http.diagnosis import diagnose
from socratic_runner.models.http.failures import LONGEST_FOREIGN_MESSAGE, NOWHERE, Failures
from socratic_runner.models.http.keys import HIDDEN, Key
from socratic_runner.models.http.problems import ProviderProblem, retry_after

_OWN: Final = Failures("Bedrock", None)
_FOREIGN: Final = Failures("Bedrock", None, longest=LONGEST_FOREIGN_MESSAGE)

_BY_CODE: Final = {
    "throttlingexception": FailureKind.RATE_LIMITED,
    "toomanyrequestsexception": FailureKind.RATE_LIMITED,
    "servicequotaexceededexception": FailureKind.RATE_LIMITED,
    "serviceunavailableexception": FailureKind.OVERLOADED,
    "modelnotreadyexception": FailureKind.OVERLOADED,
    "internalserverexception": FailureKind.OVERLOADED,
    "internalfailure": FailureKind.OVERLOADED,
    "serviceunavailable": FailureKind.OVERLOADED,
    "throttling": FailureKind.RATE_LIMITED,
    "modeltimeoutexception": FailureKind.TIMEOUT,
    "modelerrorexception": FailureKind.UNKNOWN,
    "modelstreamerrorexception": FailureKind.CUT_STREAM,
    "accessdenied": FailureKind.AUTH,
    "notauthorized": FailureKind.AUTH,
    "optinrequired": FailureKind.AUTH,
    "accessdeniedexception": FailureKind.AUTH,
    "unrecognizedclientexception": FailureKind.AUTH,
    "expiredtokenexception": FailureKind.AUTH,
    "expiredtoken": FailureKind.AUTH,
    "invalidclienttokenid": FailureKind.AUTH,
    "invalidsignatureexception": FailureKind.AUTH,
    "signaturedoesnotmatch": FailureKind.AUTH,
    "incompletesignature": FailureKind.AUTH,
    "missingauthenticationtokenexception": FailureKind.AUTH,
    "resourcenotfoundexception": FailureKind.NOT_FOUND,
}
"""The class of each AWS error code, in lower case: a stream begins codes with a small letter."""

_BY_EXCEPTION: Final = (
    ("ReadTimeoutError", FailureKind.TIMEOUT),
    ("ConnectionError", FailureKind.UNREACHABLE),
    ("HTTPClientError", FailureKind.UNREACHABLE),
    ("NoCredentialsError", FailureKind.AUTH),
    ("PartialCredentialsError", FailureKind.AUTH),
    ("CredentialRetrievalError", FailureKind.AUTH),
    ("NoAuthTokenError", FailureKind.AUTH),
    ("TokenRetrievalError", FailureKind.AUTH),
    ("SSOError", FailureKind.AUTH),
    ("LoginError", FailureKind.AUTH),
    ("RefreshWithMFAUnsupportedError", FailureKind.AUTH),
    ("ProfileNotFound", FailureKind.AUTH),
    ("ParamValidationError", FailureKind.BAD_REQUEST),
    ("ValidationError", FailureKind.BAD_REQUEST),
    ("BaseEndpointResolverError", FailureKind.BAD_REQUEST),
    ("EndpointProviderError", FailureKind.BAD_REQUEST),
)
"""The class of each exception of botocore; the first match counts. A slow connect is a
ConnectionError."""

_TOO_LONG: Final = re.compile(r"too long|input tokens|total text bytes", re.IGNORECASE)
"""Bedrock's own wording, besides that of other providers."""

_SECRET_VARIABLES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    BEARER_VARIABLE,
)
_SECRET: Final = re.compile(
    r"(?P<name>x-amz-security-token\W+|credential=|signature=)[^\s,&'\"]+"
    r"|\b(AKIA|ASIA)[A-Z0-9]{16}\b",
    re.IGNORECASE,
)
"""The parts of a request that AWS repeats when it rejects the signature."""


def failure_of(
    error: Exception, headers: Mapping[str, str] | None = None, *, own: bool = True
) -> ModelCallFailed | None:
    """Classify `error`; returns None if it comes neither from Bedrock nor from the network.

    `headers` are those of the reply with the error. `own` marks AWS itself; messages of other
    servers are cut shorter.
    """
    if isinstance(error, ModelCallFailed):
        return error
    found = _found(error, headers)
    if found is None:
        return None
    kind, message, wait = found
    diagnosis = None
    if kind is FailureKind.BAD_REQUEST and isinstance(error, _client_error()):
        diagnosis = diagnose(kind, None, ProviderProblem(message), NOWHERE)
    failures = _OWN if own else _FOREIGN
    return failures.failure(kind, without_credentials(message), wait=wait, diagnosis=diagnosis)


def _client_error() -> type[Exception]:
    """Return botocore's class of errors that a server answered."""
    return import_module("botocore.exceptions").ClientError  # type: ignore[no-any-return]


def _found(
    error: Exception, headers: Mapping[str, str] | None
) -> tuple[FailureKind, str, float | None] | None:
    """Return the class of an error, its message, and the seconds to wait."""
    exceptions = import_module("botocore.exceptions")
    if isinstance(error, exceptions.ClientError):
        return _answered(error.response, headers or {})
    if refused := refused_address(error):
        return FailureKind.BAD_REQUEST, f"cannot be asked: {refused}", None
    if isinstance(error, exceptions.BotoCoreError):
        return _kind_of_exception(error), f"cannot be asked: {error}", None
    kind = _kind_within_a_reply(error)
    # Only the message: aiohttp's errors hold the headers of the request.
    message = f"did not finish its reply: {str(error) or type(error).__name__}"
    return None if kind is None else (kind, message, None)


def _kind_of_exception(error: Any) -> FailureKind:
    if isinstance(error.kwargs.get("error"), import_module("aiohttp").ClientPayloadError):
        return FailureKind.CUT_STREAM
    exceptions = import_module("botocore.exceptions")
    for name, kind in _BY_EXCEPTION:
        if isinstance(error, getattr(exceptions, name)):
            return kind
    return FailureKind.UNKNOWN


def _kind_within_a_reply(error: Exception) -> FailureKind | None:
    """Classify an error within a reply, which botocore's errors do not cover."""
    if isinstance(error, import_module("botocore.eventstream").ParserError):
        return FailureKind.MALFORMED_REPLY
    if isinstance(error, import_module("botocore.parsers").ResponseParserError):
        return FailureKind.MALFORMED_REPLY
    if isinstance(error, TimeoutError):
        return FailureKind.TIMEOUT
    if isinstance(error, OSError | import_module("aiohttp").ClientError):
        return FailureKind.CUT_STREAM
    return None


def _answered(
    response: Mapping[str, Any], headers: Mapping[str, str]
) -> tuple[FailureKind, str, float | None]:
    error, metadata = response.get("Error", {}), response.get("ResponseMetadata", {})
    code, message = str(error.get("Code", "")), str(error.get("Message", ""))
    status = metadata.get("HTTPStatusCode")
    headers = metadata.get("HTTPHeaders") or headers
    name = "" if code == str(status) else f" ({code})"  # botocore swaps the two
    said = f"answered HTTP {status}{name}: {message or 'without a message'}"
    return kind_of(code, status, message), said, retry_after(headers, datetime.now(UTC))


def kind_of(code: str, status: int | None, message: str) -> FailureKind:
    """Classify an error response of Bedrock, or of a gateway before it.

    AWS's own codes decide; without one the status does.
    """
    kind = _BY_CODE.get(code.lower())
    if status is not None and 300 <= status < 400:
        return FailureKind.BAD_REQUEST  # a redirect, which is not followed
    if kind is None:
        kind = http_failures.kind_of(status, (), message)
    too_long = kind is FailureKind.BAD_REQUEST and _TOO_LONG.search(message)
    return FailureKind.CONTEXT_TOO_LONG if too_long else kind


def without_credentials(text: str) -> str:
    """Remove the credentials of a request from `text`."""
    for variable in _SECRET_VARIABLES:
        if value := os.environ.get(variable):
            text = Key(value).hide_in(text)
    return _SECRET.sub(lambda found: f"{found['name'] or ''}{HIDDEN}", text)
