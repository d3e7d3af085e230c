"""One queue of the server, ten messages to a request, and a message as it delivers it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import structlog

from socratic_bench.adapters.brokers.sqs.connection import AwsConnection, is_final
from socratic_bench.adapters.brokers.sqs.wire import (
    STATE,
    Encoded,
    WireState,
    bytes_of,
    decode,
    untyped,
)
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.errors import BrokerRefused, BrokerUnavailable
from socratic_bench.events.codec import Message

log = structlog.get_logger(__name__)


class Incoming(NamedTuple):
    """One message of SQS, which holds one or several of ours."""

    id: str
    """SQS' own id: a failed record of a function is reported by it."""

    handle: str
    """The receipt handle, by which this delivery is settled."""

    encoded: Encoded
    state: WireState

    receives: int
    """How often SQS has delivered this copy, this time included."""

    sent: int
    """When this copy was sent, in Unix milliseconds."""

    @property
    def redeliveries(self) -> int:
        """How often it came back unsettled, to this copy and to those before."""
        return self.state.redeliveries + self.receives - 1

    def messages(self, content: bytes | None = None) -> list[Message]:
        """Decode its messages; `content` is what its claim stands for, if it has one."""
        if content is None:
            content = bytes_of(self.encoded.body, self.state)
        return decode(self.encoded, content, self.state, self.id)


def incoming_of(record: Mapping[str, Any]) -> Incoming:
    """Read a message of a poll, or a record of a Lambda event. A stranger's passes too."""
    system = record.get("Attributes") or record.get("attributes") or {}
    attributes = untyped(
        record.get("MessageAttributes") or record.get("messageAttributes"),
        ("StringValue", "stringValue"),
    )
    return Incoming(
        str(record.get("MessageId") or record.get("messageId") or ""),
        str(record.get("ReceiptHandle") or record.get("receiptHandle") or ""),
        Encoded(str(record.get("Body") or record.get("body") or ""), attributes),
        WireState.decode(attributes.get(STATE)),
        max(1, _number(system.get("ApproximateReceiveCount"))),
        _number(system.get("SentTimestamp")),
    )


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


MOST_ENTRIES: Final = 10
"""The most messages of one request."""

LONGEST_POLL: Final = 20
"""Seconds that a poll of an empty queue waits: the most that SQS allows."""

SETTLE_SECONDS: Final = 15.0
"""Seconds after which a deletion is given up; the message is still invisible then."""

_AT_ONCE: Final = 8
"""Requests for one call that are under way at the same time."""

_RETRY: Final = RetryPolicy(first_delay=0.1, longest_delay=2.0)


_SETTLING: Final[Mapping[str, Mapping[str, int]]] = {
    "delete_message_batch": {},
    "change_message_visibility_batch": {"VisibilityTimeout": 0},
}
"""The operations that settle a message, and what their entries hold beside its handle."""


class ServerQueue:
    """A queue under its name and address on the server."""

    def __init__(self, connection: AwsConnection, name: str, url: str) -> None:
        self._connection = connection
        self.name = name
        self.url = url
        self.may_settle = False
        """Whether these credentials have the rights to settle, as far as this process knows."""

    async def check_rights(self) -> None:
        """Raise BrokerRefused without the rights to settle, unless they were there a moment ago.

        A consumer that cannot delete what it copies would fill the queue with copies.
        """
        if self.may_settle:
            return
        for operation, more in _SETTLING.items():
            entry = {"Id": "0", "ReceiptHandle": "none", **more}
            # SQS refuses this handle, but looks at the rights before.
            await self._connection.call("sqs", operation, QueueUrl=self.url, Entries=[entry])
        self.may_settle = True

    async def receive(
        self, limit: int, *, invisible: float, wait: int = LONGEST_POLL
    ) -> list[Incoming]:
        """Poll once for up to ten messages, which stay invisible for so many seconds."""
        answer = await self._connection.call(
            "sqs",
            "receive_message",
            waits=wait,
            QueueUrl=self.url,
            MaxNumberOfMessages=min(limit, MOST_ENTRIES),
            VisibilityTimeout=round(invisible),
            WaitTimeSeconds=wait,
            MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
            MessageAttributeNames=["All"],
        )
        return [incoming_of(each) for each in answer.get("Messages", ())]

    async def delete(self, handles: Sequence[str]) -> set[str]:
        """Delete messages; returns the handles of those that SQS would not delete.

        Tries again for SETTLE_SECONDS.
        """
        return await self._settle("delete_message_batch", handles)

    async def show_in(self, seconds: int, handles: Sequence[str]) -> set[str]:
        """Make messages visible in so many seconds from now; returns the handles that failed."""
        return await self._settle(
            "change_message_visibility_batch", handles, VisibilityTimeout=seconds
        )

    async def depth(self) -> int:
        """Count visible and delayed messages, not those in flight."""
        counts = await self.attributes(
            "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed"
        )
        return sum(map(int, counts.values()))

    async def attributes(self, *names: str) -> Mapping[str, str]:
        """Return attributes of the queue by their names; all of them without a name."""
        answer = await self._connection.call(
            "sqs",
            "get_queue_attributes",
            QueueUrl=self.url,
            AttributeNames=list(names) or ["All"],
        )
        found: Mapping[str, str] = answer.get("Attributes", {})
        return found

    async def _settle(self, operation: str, handles: Sequence[str], **more: Any) -> set[str]:
        free = asyncio.Semaphore(_AT_ONCE)
        batches = [
            self._settle_ten(free, operation, ten, more)
            for ten in in_tens(list(dict.fromkeys(handles)))
        ]
        return set().union(*await asyncio.gather(*batches))

    async def _settle_ten(
        self, free: asyncio.Semaphore, operation: str, handles: Sequence[str], more: dict[str, Any]
    ) -> set[str]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SETTLE_SECONDS
        failed: set[str] = set()
        attempt = 0
        while handles:
            attempt += 1
            refused, handles = await self._try_ten(free, operation, handles, more)
            failed |= refused
            delay = _RETRY.delay(attempt)
            if handles and loop.time() + delay > deadline:
                return failed.union(handles)
            if handles:
                await asyncio.sleep(delay)
        return failed

    async def _try_ten(
        self, free: asyncio.Semaphore, operation: str, handles: Sequence[str], more: dict[str, Any]
    ) -> tuple[set[str], Sequence[str]]:
        """The handles that SQS refuses for good, and those to try again."""
        entries = [
            {"Id": str(number), "ReceiptHandle": handle, **more}
            for number, handle in enumerate(handles)
        ]
        try:
            async with free:
                answer = await self._connection.call(
                    "sqs", operation, QueueUrl=self.url, Entries=entries
                )
        except BrokerRefused as error:
            log.warning("cannot settle", queue=self.name, reason=str(error))
            self.may_settle = False
            return set(handles), ()
        except BrokerUnavailable:
            return set(), handles
        failed = answer.get("Failed", ())
        refused = {handles[int(each["Id"])] for each in failed if is_final(each)}
        again = [handles[int(each["Id"])] for each in failed if not is_final(each)]
        return refused, again


def in_tens(handles: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split into parts for one request each."""
    for start in range(0, len(handles), MOST_ENTRIES):
        yield handles[start : start + MOST_ENTRIES]


def handles_of(incoming: Iterable[Incoming]) -> list[str]:
    """The handles by which messages are settled."""
    return [each.handle for each in incoming]
