"""Claim checks: content that is too large for a message lies in S3, under its hash.

Nothing deletes it here: copies, other queues and dead letters may name the same object. A lifecycle
rule of the bucket does, later than SQS keeps any message.
"""

from __future__ import annotations

from hashlib import sha256

from socratic_bench.adapters.brokers.sqs.connecting.connection import AwsConnection
from socratic_bench.adapters.brokers.sqs.record import Incoming
from socratic_bench.errors import BrokerError, BrokerUnavailable
from socratic_bench.events.message import Message


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
