"""SQS, SNS and S3 for tests, and a corner of them for each test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlencode
from uuid import uuid4

from aiobotocore.session import get_session

from tests.servers import aws_emulator
from tests.servers.discovery import Server


@asynccontextmanager
async def namespace(server: Server = aws_emulator.SERVER) -> AsyncIterator[str]:
    """The address of a private namespace; its queues and topics are deleted afterwards."""
    endpoint = await asyncio.to_thread(server.address)
    os.environ.update(aws_emulator.credentials())
    name = f"test-{uuid4().hex[:12]}"
    options = urlencode({"endpoint": endpoint, "bucket": f"{name}-claims"})
    try:
        yield f"sqs://{aws_emulator.REGION}/{name}?{options}"
    finally:
        await delete(endpoint, name)


async def delete(endpoint: str, prefix: str) -> None:
    """Delete the queues and topics whose names begin with `prefix`."""
    session = get_session()
    where = {"endpoint_url": endpoint, "region_name": aws_emulator.REGION}
    async with session.create_client("sqs", **where) as sqs:
        listed = await sqs.list_queues(QueueNamePrefix=prefix)
        for url in listed.get("QueueUrls", ()):
            await sqs.delete_queue(QueueUrl=url)
    async with session.create_client("sns", **where) as sns:
        for topic in (await sns.list_topics())["Topics"]:
            if topic["TopicArn"].rpartition(":")[2].startswith(prefix):
                await sns.delete_topic(TopicArn=topic["TopicArn"])
