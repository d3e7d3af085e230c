"""A message as SQS delivers it: by a poll, or as a record of a Lambda function's event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from socratic_bench.adapters.brokers.sqs.publishing.wire import (
    STATE,
    Encoded,
    State,
    bytes_of,
    decode,
    untyped,
)
from socratic_bench.events.message import Message


class Incoming(NamedTuple):
    """One message of SQS, which holds one or several of ours."""

    id: str
    """SQS' own id: a failed record of a function is reported by it."""

    handle: str
    """The receipt handle, by which this delivery is settled."""

    encoded: Encoded
    state: State

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
        State.decode(attributes.get(STATE)),
        max(1, _number(system.get("ApproximateReceiveCount"))),
        _number(system.get("SentTimestamp")),
    )


def _number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0
