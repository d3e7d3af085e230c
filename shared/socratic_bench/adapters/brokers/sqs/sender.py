"""Sends messages to queues and topics, ten to a request, until SQS and SNS have taken all.

Content that is too large for a message lies in S3, under its hash. Nothing deletes it here: copies,
other queues and dead letters may name the same object. A lifecycle rule of the bucket does, later
than SQS keeps any message.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from socratic_bench.adapters.brokers.batches import content_of
from socratic_bench.adapters.brokers.sqs.connection import AwsConnection, Service, is_final
from socratic_bench.adapters.brokers.sqs.server_queue import MOST_ENTRIES, Incoming
from socratic_bench.adapters.brokers.sqs.wire import (
    MOST_BROADCAST_BYTES,
    MOST_BYTES,
    Encoded,
    WireState,
    encode,
    typed,
)
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.errors import BrokerError, BrokerRefused, BrokerUnavailable
from socratic_bench.events.codec import Message


class Claims:
    """Checks content in and out of the bucket of the broker's address."""

    def __init__(self, connection: AwsConnection) -> None:
        self._connection = connection
        self._address = connection.address

    async def check_in(self, content: bytes) -> str:
        """Store content; returns its key. Raises BrokerError without a bucket."""
        bucket = self._address.bucket
        if bucket is None:
            raise BrokerError(
                f"{self._address.name}: a message of {len(content):,} bytes is too large for SQS; "
                "name an S3 bucket in the broker's address, as in ?bucket=my-claims"
            )
        key = self._address.named(f"claims/{sha256(content).hexdigest()}")
        await self._connection.call("s3", "put_object", Bucket=bucket, Key=key, Body=content)
        return key

    async def messages_of(self, incoming: Incoming) -> list[Message]:
        """Decode the messages of `incoming`, and fetch their content if it lies in S3.

        Content that is gone leaves a message that no handler can decode, and so a dead letter.
        Raises BrokerUnavailable if S3 does not answer: it may yet.
        """
        key, bucket = incoming.state.claim, self._address.bucket
        if key is None:
            return incoming.messages()
        if bucket is None:
            raise BrokerUnavailable(
                f"{self._address.name}: message {incoming.id} lies in S3; name its bucket in the "
                "broker's address, as in ?bucket=my-claims"
            )
        answer = await self._connection.look("s3", "get_object", Bucket=bucket, Key=key)
        if answer is None:
            return incoming.messages()
        async with answer["Body"] as body:
            return incoming.messages(await body.read())


SEND_SECONDS: Final = 30.0
"""Seconds within which SQS and SNS have to take all messages of one call."""

LONGEST_DELAY: Final = 900
"""Seconds: the longest delay of a message that SQS knows."""

_AT_ONCE: Final = 8
"""Requests of one call that are under way at the same time."""

_RETRY: Final = RetryPolicy(first_delay=0.1, longest_delay=2.0)
_GROUP_ID: Final = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}")

_SHORTER: Final = re.compile(r"shorter than (\d+) bytes")
"""The words of SQS for a message that is too large for the settings of its queue."""


class SendTarget(NamedTuple):
    """A queue or a topic of the server."""

    address: str
    """The queue's URL, or the topic's ARN."""

    is_topic: bool = False

    separate_groups: bool = False
    """Whether a queue is fair to groups, and so needs to know them."""


class OutgoingSend(NamedTuple):
    """A message for a queue or a topic."""

    target: SendTarget
    encoded: Encoded
    delay: int = 0
    """Seconds until it may be delivered."""


class Sender:
    """Sends; a part that fails is sent again for SEND_SECONDS."""

    def __init__(self, connection: AwsConnection) -> None:
        self._connection = connection
        self._claims = Claims(connection)

    async def encoded(
        self,
        messages: Sequence[Message],
        state: WireState | None = None,
        *,
        for_topic: bool = False,
    ) -> Encoded:
        """Encode messages; content that is too large goes to S3.

        Raises BrokerUnavailable, and BrokerError if there is no bucket for it.
        """
        encoded = encode(messages, state)
        if encoded.size <= (MOST_BROADCAST_BYTES if for_topic else MOST_BYTES):
            return encoded
        return encode(messages, state, claim=await self._claims.check_in(content_of(messages)))

    async def send(self, outgoing: Sequence[OutgoingSend]) -> None:
        """Send; returns once all are taken. Some may be sent twice.

        Raises BrokerRefused, BrokerUnavailable after SEND_SECONDS, and BrokerError for a message
        that SQS refuses for good; it may have taken others then.
        """
        by_target: defaultdict[SendTarget, list[OutgoingSend]] = defaultdict(list)
        for each in outgoing:
            by_target[each.target].append(each)
        free = asyncio.Semaphore(_AT_ONCE)
        requests = [
            self._send_request(free, target, request)
            for target, together in by_target.items()
            for request in _requests(target, together)
        ]
        if len(requests) == 1:
            await requests[0]
            return
        async with asyncio.TaskGroup() as sending:
            tasks = [sending.create_task(_caught(request)) for request in requests]
        for task in tasks:
            if (error := task.result()) is not None:
                raise error

    async def _send_request(
        self, free: asyncio.Semaphore, target: SendTarget, outgoing: Sequence[OutgoingSend]
    ) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SEND_SECONDS
        attempt = 0
        while True:
            attempt += 1
            trouble = f"{target.address} took only some of the messages"
            try:
                async with free:
                    outgoing = await self._try(target, outgoing)
            except BrokerRefused:
                raise
            except BrokerUnavailable as error:
                trouble = str(error)
            if not outgoing:
                return
            delay = _RETRY.delay(attempt)
            if loop.time() + delay > deadline:
                raise BrokerUnavailable(f"not sent within {SEND_SECONDS:g} s: {trouble}")
            await asyncio.sleep(delay)

    async def _try(
        self, target: SendTarget, outgoing: Sequence[OutgoingSend]
    ) -> Sequence[OutgoingSend]:
        """Make one request; returns what the server did not take and may yet take."""
        answer = await self._connection.call(
            *_request(target, outgoing), **_entries(target, outgoing)
        )
        again: list[OutgoingSend] = []
        for failed in answer.get("Failed", ()):
            if is_final(failed):
                if most := _SHORTER.search(str(failed.get("Message", ""))):
                    size = outgoing[int(failed["Id"])].encoded.size
                    raise BrokerError(
                        f"{target.address} takes messages of {int(most[1]):,} bytes, and one has "
                        f"{size:,}: set its MaximumMessageSize to {MOST_BYTES}"
                    )
                raise BrokerError(
                    f"{target.address} refuses a message for good: {failed.get('Code')}: "
                    f"{failed.get('Message', '')}"
                )
            again.append(outgoing[int(failed["Id"])])
        return again


def _request(target: SendTarget, _outgoing: Sequence[OutgoingSend]) -> tuple[Service, str]:
    return ("sns", "publish_batch") if target.is_topic else ("sqs", "send_message_batch")


def _entries(target: SendTarget, outgoing: Sequence[OutgoingSend]) -> dict[str, Any]:
    if target.is_topic:
        return {
            "TopicArn": target.address,
            "PublishBatchRequestEntries": [
                {
                    "Id": str(number),
                    "Message": each.encoded.body,
                    "MessageAttributes": typed(each.encoded.attributes),
                }
                for number, each in enumerate(outgoing)
            ],
        }
    return {
        "QueueUrl": target.address,
        "Entries": [
            {
                "Id": str(number),
                "MessageBody": each.encoded.body,
                "MessageAttributes": typed(each.encoded.attributes),
                "DelaySeconds": each.delay,
                **(
                    {"MessageGroupId": _group_id(each.encoded.group)}
                    if target.separate_groups
                    else {}
                ),
            }
            for number, each in enumerate(outgoing)
        ],
    }


def _requests(target: SendTarget, outgoing: Sequence[OutgoingSend]) -> Iterator[list[OutgoingSend]]:
    """Split into what one request may hold."""
    most = MOST_BROADCAST_BYTES if target.is_topic else MOST_BYTES
    request: list[OutgoingSend] = []
    size = 0
    for each in outgoing:
        if request and (len(request) == MOST_ENTRIES or size + each.encoded.size > most):
            yield request
            request, size = [], 0
        request.append(each)
        size += each.encoded.size
    if request:
        yield request


def _group_id(group: str) -> str:
    """Return a group as SQS takes it: a hash of one that is empty, too long, or not ASCII."""
    return group if _GROUP_ID.fullmatch(group) else sha256(group.encode()).hexdigest()


async def _caught(request: Any) -> BrokerError | None:
    """Await a request; its error must not cancel the others halfway."""
    try:
        await request
    except BrokerError as error:
        return error
    return None
