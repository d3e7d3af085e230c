"""Records of SQS, as Lambda hands them to a function."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiobotocore.session import get_session

from tests.servers import aws_emulator


async def received(url: str, queue: str, limit: int = 10) -> dict[str, Any]:
    """The event of the messages that wait in a queue of the broker at `url`, as they come."""
    parts = urlsplit(url)
    name = f"{parts.path.strip('/')}-{queue}"
    endpoint = parse_qs(parts.query)["endpoint"][0]
    where = {"endpoint_url": endpoint, "region_name": aws_emulator.REGION}
    async with get_session().create_client("sqs", **where) as sqs:
        address = (await sqs.get_queue_url(QueueName=name))["QueueUrl"]
        answer = await sqs.receive_message(
            QueueUrl=address,
            MaxNumberOfMessages=limit,
            WaitTimeSeconds=5,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
    return event([record(each, name) for each in answer.get("Messages", ())])


def event(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The event of these records."""
    return {"Records": records}


def record(message: dict[str, Any], queue: str) -> dict[str, Any]:
    """A message of SQS as a record of a queue with this name on the server."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {
            name: {"stringValue": value["StringValue"], "dataType": value["DataType"]}
            for name, value in message.get("MessageAttributes", {}).items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{aws_emulator.REGION}:{aws_emulator.ACCOUNT}:{queue}",
        "awsRegion": aws_emulator.REGION,
    }


def poisoned(queue: str) -> dict[str, Any]:
    """A record that is no event."""
    message = {"MessageId": "poison", "ReceiptHandle": "none", "Body": "{not an event"}
    return record(message, f"any-{queue}")
