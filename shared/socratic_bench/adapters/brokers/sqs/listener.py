"""One listener to broadcasts, with a queue of its own that ends with it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Final
from uuid import uuid4

import structlog

from socratic_bench.adapters.brokers.receiving import BroadcastListener
from socratic_bench.adapters.brokers.sqs import topology
from socratic_bench.adapters.brokers.sqs.connection import AwsConnection
from socratic_bench.adapters.brokers.sqs.sender import Claims
from socratic_bench.adapters.brokers.sqs.server_queue import (
    MOST_ENTRIES,
    ServerQueue,
    handles_of,
)
from socratic_bench.concurrency.deadlines import cancelled
from socratic_bench.errors import BrokerClosed, BrokerError

log = structlog.get_logger(__name__)

PREFIX: Final = "listener-"
"""How the names of listeners' queues begin."""

FORGOTTEN_SECONDS: Final = 3600.0
"""Seconds after which a queue whose listener says nothing counts as left behind by a killed
process."""

_RETENTION_SECONDS: Final = 60
_LISTENING: Final = "socratic-listening"
"""The tag with the time, in Unix seconds, at which a listener last said that it is there."""


class ListenerQueue:
    """Made with its subscriptions, renewed now and then, deleted with them."""

    def __init__(
        self,
        connection: AwsConnection,
        topics: Sequence[str],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`topics` are ARNs; `now` tells the time in Unix seconds."""
        self._connection = connection
        self._topics = topics
        self._now = now
        self._queue: ServerQueue | None = None
        self._subscriptions: list[str] = []
        self._renewed = 0.0

    async def open(self) -> ServerQueue:
        """Create and subscribe the queue; it gets everything from now on.

        Raises BrokerUnavailable and BrokerClosed; `delete` removes what is there then.
        """
        await self._delete_forgotten()
        name = self._connection.address.named(f"{PREFIX}{uuid4().hex[:16]}")
        self._renewed = self._now()
        answer = await self._connection.call(
            "sqs",
            "create_queue",
            QueueName=name,
            Attributes={
                "MessageRetentionPeriod": str(_RETENTION_SECONDS),
                "SqsManagedSseEnabled": "true",
            },
            tags=self._tags(),
        )
        queue = self._queue = ServerQueue(self._connection, name, answer["QueueUrl"])
        arn = await topology.arn_of(self._connection, queue)
        await self._connection.call(
            "sqs",
            "set_queue_attributes",
            QueueUrl=queue.url,
            Attributes={"Policy": _policy(arn, self._topics)},
        )
        for topic in self._topics:
            answer = await self._connection.call(
                "sns",
                "subscribe",
                TopicArn=topic,
                Protocol="sqs",
                Endpoint=arn,
                Attributes={"RawMessageDelivery": "true"},
                ReturnSubscriptionArn=True,
            )
            self._subscriptions.append(answer["SubscriptionArn"])
        return queue

    async def renew(self) -> None:
        """Say that the listener is there, if that was said long ago."""
        if self._queue is None or self._now() - self._renewed < FORGOTTEN_SECONDS / 3:
            return
        self._renewed = self._now()
        await self._connection.call("sqs", "tag_queue", QueueUrl=self._queue.url, Tags=self._tags())

    async def delete(self) -> None:
        """Delete the queue and its subscriptions. Raises BrokerUnavailable."""
        while self._subscriptions:
            await self._unsubscribe(self._subscriptions.pop())
        queue, self._queue = self._queue, None
        if queue is not None:
            await self._connection.look("sqs", "delete_queue", QueueUrl=queue.url)

    async def _delete_forgotten(self) -> None:
        """Delete the queues of listeners that were killed, and their subscriptions."""
        prefix = self._connection.address.named(PREFIX)
        answer = await self._connection.call("sqs", "list_queues", QueueNamePrefix=prefix)
        for url in answer.get("QueueUrls", ()):
            found = await self._connection.look("sqs", "list_queue_tags", QueueUrl=url) or {}
            said = found.get("Tags", {}).get(_LISTENING, "")
            if said.isdecimal() and self._now() - int(said) > FORGOTTEN_SECONDS:
                await self._forget(url.rpartition("/")[2])
                await self._connection.look("sqs", "delete_queue", QueueUrl=url)

    async def _forget(self, name: str) -> None:
        for topic in self._topics:
            answer = await self._connection.call(
                "sns", "list_subscriptions_by_topic", TopicArn=topic
            )
            for each in answer.get("Subscriptions", ()):
                if str(each["Endpoint"]).endswith(f":{name}"):
                    await self._unsubscribe(each["SubscriptionArn"])

    async def _unsubscribe(self, subscription: str) -> None:
        await self._connection.look("sns", "unsubscribe", SubscriptionArn=subscription)

    def _tags(self) -> dict[str, str]:
        return {_LISTENING: str(int(self._now()))}


def _policy(queue: str, topics: Sequence[str]) -> str:
    """Allow these topics, and no other sender, to send to a queue."""
    return json.dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "sns.amazonaws.com"},
                    "Action": "sqs:SendMessage",
                    "Resource": queue,
                    "Condition": {"ArnEquals": {"aws:SourceArn": list(topics)}},
                }
            ],
        }
    )


_INVISIBLE_SECONDS: Final = 30.0
_TRY_AGAIN_SECONDS: Final = 1.0


class SqsListener(BroadcastListener):
    """Hears broadcasts from a queue of its own."""

    def __init__(self, connection: AwsConnection, claims: Claims, topics: Sequence[str]) -> None:
        """`topics` are the ARNs of what to listen to."""
        super().__init__()
        self._claims = claims
        self._queue = ListenerQueue(connection, topics)
        self._running: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen from now on. Raises BrokerUnavailable and BrokerClosed."""
        try:
            queue = await self._queue.open()
        except BaseException:
            await self.end(closed=False)
            raise
        self._running = asyncio.create_task(self._run(queue), name="listener")

    async def end(self, *, closed: bool) -> None:
        """Stop listening: the context ended, or the broker was closed."""
        self.stop(closed=closed)
        if self._running is not None:
            await cancelled(self._running)
        try:
            await self._queue.delete()
        except BrokerError as error:
            log.debug("a listener's queue stays", reason=str(error))

    async def _run(self, queue: ServerQueue) -> None:
        while True:
            try:
                await self._hear(queue)
                await self._queue.renew()
            except BrokerClosed:
                return
            except BrokerError as error:
                log.warning("cannot listen", reason=str(error))
                await asyncio.sleep(_TRY_AGAIN_SECONDS)

    async def _hear(self, queue: ServerQueue) -> None:
        brought = await queue.receive(MOST_ENTRIES, invisible=_INVISIBLE_SECONDS)
        for incoming in brought:
            self.hear(await self._claims.messages_of(incoming))
        if brought:
            await queue.delete(handles_of(brought))
