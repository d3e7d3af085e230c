"""The errors of AWS, as sentences with the place and the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import ClientError as HttpError
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from socratic_bench.errors import (
    StoreBroken,
    StoreError,
    StoreNotWritable,
    StoreRefused,
    StoreUnavailable,
)

ERRORS: Final = (BotoCoreError, ClientError, HttpError, OSError)
"""The client's errors."""

_AGAIN = "try again later"
_CREDENTIALS = "AWS refuses the credentials; check those of the environment, or of the role"
_THROTTLED = f"the table takes no more requests for now; {_AGAIN}, or raise its capacity"
_CONFLICT = f"other writers changed the same items for too long; {_AGAIN}"

_SENTENCES: Final[Mapping[str, tuple[type[StoreError], str]]] = {
    "ResourceNotFoundException": (StoreBroken, "there is no such table; the deployment makes it"),
    "AccessDeniedException": (
        StoreNotWritable,
        "these credentials lack a right on the table; grant it to the role",
    ),
    "AccessDenied": (StoreNotWritable, "these credentials lack a right on the bucket; grant it"),
    "NoSuchBucket": (StoreBroken, "there is no such bucket; the deployment makes it"),
    "UnrecognizedClientException": (StoreNotWritable, _CREDENTIALS),
    "InvalidSignatureException": (StoreNotWritable, _CREDENTIALS),
    "ExpiredTokenException": (StoreNotWritable, _CREDENTIALS),
    "ItemCollectionSizeLimitExceededException": (StoreRefused, "a partition is full"),
    "ValidationException": (StoreRefused, "it cannot hold a given value"),
    "TransactionCanceledException": (StoreUnavailable, _CONFLICT),
    "TransactionConflictException": (StoreUnavailable, _CONFLICT),
    "TransactionInProgressException": (StoreUnavailable, _CONFLICT),
    "ProvisionedThroughputExceededException": (StoreUnavailable, _THROTTLED),
    "RequestLimitExceeded": (StoreUnavailable, _THROTTLED),
    "ThrottlingException": (StoreUnavailable, _THROTTLED),
    "LimitExceededException": (StoreUnavailable, _THROTTLED),
    "ResourceInUseException": (StoreUnavailable, f"the table is being changed; {_AGAIN}"),
    "InternalServerError": (StoreUnavailable, f"DynamoDB has a failure; {_AGAIN}"),
    "ServiceUnavailable": (StoreUnavailable, f"DynamoDB has a failure; {_AGAIN}"),
}


def explain(error: Exception, name: str) -> StoreError:
    """Return this project's error for `error` of the table `name`."""
    match error:
        case ClientError():
            return _explain_answer(error, name)
        case NoCredentialsError() | PartialCredentialsError():
            return StoreBroken(f"{name}: there are no AWS credentials in the environment: {error}")
        case NoRegionError():
            return StoreBroken(
                f"{name}: no region is known; set AWS_REGION, or add ?region=… to the address"
            )
        case _:
            return StoreUnavailable(f"{name}: DynamoDB does not answer; {_AGAIN} ({error})")


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _explain_answer(error: ClientError, name: str) -> StoreError:
    answer = error.response.get("Error", {})
    said = f"AWS says: {answer.get('Message', error)}"
    if known := _SENTENCES.get(code_of(error)):
        kind, sentence = known
        return kind(f"{name}: {sentence} ({said})")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = StoreUnavailable if status >= 500 else StoreError
    return kind(f"{name}: {said}")
