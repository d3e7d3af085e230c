"""Requests to SQS, SNS and S3, each with a deadline, over clients that are made when first used."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, Literal

from aiobotocore.config import AioConfig  # type: ignore[import-untyped]
from aiobotocore.session import AioSession  # type: ignore[import-untyped]
from aiohttp import ClientError as HttpError
from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)

from socratic_bench.adapters.brokers.declarations import broker_closed
from socratic_bench.adapters.brokers.sqs.address import Address
from socratic_bench.errors import BrokerRefused, BrokerUnavailable

Service = Literal["sqs", "sns", "s3"]

REQUEST_SECONDS: Final = 10.0
"""Seconds that a request may take, beside what a long poll waits."""

_CONNECT_SECONDS: Final = 5.0
_MOST_CONNECTIONS: Final = 100
_MISSING: Final = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "QueueDoesNotExist",
        "NotFound",
        "NotFoundException",
        "NoSuchKey",
        "404",
    }
)

_DENIED: Final = (
    "AccessDenied",
    "AuthorizationError",
    "AuthFailure",
    "ExpiredToken",
    "Forbidden",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "MissingAuthenticationToken",
    "SignatureDoesNotMatch",
    "UnrecognizedClient",
)
"""How the codes begin by which AWS refuses credentials, or a right of theirs; of a key of KMS
behind its own prefix."""


class AwsConnection:
    """The clients of one broker. It belongs to one event loop."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.requests: dict[str, int] = {}
        """How many requests were made, by operation: they are the bill."""
        self._opened = AsyncExitStack()
        self._clients: dict[Service, Any] = {}
        self._session = AioSession()
        """One for all clients: each reads the list of AWS's endpoints again (D-382)."""
        self._opening = asyncio.Lock()
        self._closed = False
        self.on_missing: Callable[[str], None] = lambda _: None
        """Hears the URL of a queue that somebody has deleted."""

    @property
    def closed(self) -> bool:
        return self._closed

    async def call(
        self, service: Service, operation: str, *, waits: float = 0.0, **request: Any
    ) -> dict[str, Any]:
        """Make one request. Raises BrokerUnavailable, BrokerRefused and BrokerClosed.

        `waits` is how many seconds the server may take its time, as a long poll does.
        """
        answer = await self.look(service, operation, waits=waits, **request)
        if answer is None:
            self.on_missing(str(request.get("QueueUrl", "")))
            raise BrokerUnavailable(
                f"{self.address.name}: {_target(request)} is missing; deploy the queues again, or "
                "start the services again, which declare them"
            )
        return answer

    async def look(
        self,
        service: Service,
        operation: str,
        *,
        waits: float = 0.0,
        none_for: Collection[str] = _MISSING,
        **request: Any,
    ) -> dict[str, Any] | None:
        """Make one request; None if what it names does not exist. Raises as `call` does.

        `none_for` are the codes of AWS that None stands for.
        """
        try:
            async with asyncio.timeout(waits + REQUEST_SECONDS):
                client = await self._client(service)
                self.requests[operation] = self.requests.get(operation, 0) + 1
                answer: dict[str, Any] = await getattr(client, operation)(**request)
        except ClientError as error:
            if _code(error) in none_for:
                return None
            raise self._refused(service, operation, error, _target(request)) from error
        except TimeoutError as error:
            raise self._unavailable(
                operation, f"no answer within {waits + REQUEST_SECONDS:g} s"
            ) from error
        except NoRegionError as error:
            raise BrokerRefused(
                f"{self.address.name}: no region: set AWS_REGION, or name it in the address"
            ) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise BrokerRefused(
                f"{self.address.name}: there are no AWS credentials in the environment: {error}"
            ) from error
        except (BotoCoreError, HttpError, OSError, RuntimeError) as error:
            # A client that was closed meanwhile raises RuntimeError.
            self.check_open()
            raise self._unavailable(operation, str(error) or type(error).__name__) from error
        else:
            return answer

    def check_open(self) -> None:
        """Raise BrokerClosed after `close`."""
        if self._closed:
            raise broker_closed()

    async def close(self) -> None:
        """Close all clients, also under requests that are on their way."""
        self._closed = True
        async with self._opening:
            self._clients.clear()
            await self._opened.aclose()

    async def _client(self, service: Service) -> Any:
        self.check_open()
        if service not in self._clients:
            async with self._opening:
                self.check_open()
                if service not in self._clients:
                    self._clients[service] = await self._open(service)
        return self._clients[service]

    async def _open(self, service: Service) -> Any:
        _keep_requests_out_of_logs()
        client = self._session.create_client(
            service,
            region_name=self.address.region,
            endpoint_url=self.address.endpoint,
            config=AioConfig(
                # The callers retry: they know until when, and which part of a batch.
                retries={"total_max_attempts": 1},
                connect_timeout=_CONNECT_SECONDS,
                max_pool_connections=_MOST_CONNECTIONS,
                warm_up_loader_caches=True,
            ),
        )
        return await self._opened.enter_async_context(client)

    def _refused(
        self, service: Service, operation: str, error: ClientError, target: str
    ) -> BrokerUnavailable:
        code = _code(error)
        of_key = code.lower().startswith("kms")
        if code.removeprefix("KMS.").removeprefix("Kms").startswith(_DENIED):
            right = (
                "kms:GenerateDataKey and kms:Decrypt for the key of"
                if of_key
                else f"the right {service}:{_right(operation)} for"
            )
            return BrokerRefused(
                f"{self.address.name}: AWS refuses {operation}; give these credentials {right} "
                f"{target}, or use others ({_said(error)})"
            )
        if of_key:
            return BrokerUnavailable(
                f"{self.address.name}: the key that encrypts {target} cannot be used; enable it, "
                f"or take another key for the queue ({_said(error)})"
            )
        return self._unavailable(operation, _said(error))

    def _unavailable(self, operation: str, reason: str) -> BrokerUnavailable:
        return BrokerUnavailable(f"{self.address.name}: {operation} failed: {reason}")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _right(operation: str) -> str:
    """Return the name of the right that an operation needs."""
    return operation.removesuffix("_batch").title().replace("_", "")


def _said(error: ClientError) -> str:
    said = error.response.get("Error", {})
    return f"{_code(error)}: {said.get('Message', '')}"


def _target(request: dict[str, Any]) -> str:
    found = [
        request[key] for key in ("QueueUrl", "QueueName", "TopicArn", "Bucket") if key in request
    ]
    return str(found[0]).rpartition("/")[2] if found else "what was asked for"


def _keep_requests_out_of_logs() -> None:
    """Keep botocore's debug logs off: they contain requests with credentials."""
    for name in ("botocore", "aiobotocore"):
        logger = logging.getLogger(name)
        # Not isEnabledFor: loggers below a disabled one still log.
        if logger.getEffectiveLevel() < logging.INFO:
            logger.setLevel(logging.INFO)


_THROTTLED: Final = frozenset({"OverLimit", "RequestLimitExceeded", "SlowDown", "TooManyRequests"})
"""The codes of a throttled entry whose name does not say so."""


def is_final(failed: Mapping[str, Any]) -> bool:
    """Tell whether the server refuses an entry for good.

    A throttled entry is the sender's fault in the server's words, and a later try may succeed.
    """
    code = str(failed.get("Code", ""))
    throttled = "throttl" in code.lower() or any(code.startswith(each) for each in _THROTTLED)
    return bool(failed.get("SenderFault")) and not throttled
