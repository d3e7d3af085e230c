"""What is decoded is what was encoded, within SQS' limits; a stranger's message passes too."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.adapters.brokers.batches import batches, content_of
from socratic_bench.adapters.brokers.sqs.server_queue import incoming_of
from socratic_bench.adapters.brokers.sqs.wire import (
    BATCH_BYTES,
    MOST_BYTES,
    STATE,
    Encoded,
    WireState,
    encode,
    typed,
)
from socratic_bench.events.codec import Message

TEXT = st.text(max_size=40)
MESSAGES = st.builds(
    Message,
    id=TEXT.filter(bool),
    type=st.just("t.v1"),
    group=TEXT,
    body=st.binary(max_size=200) | TEXT.map(str.encode),
    source=TEXT,
    subject=TEXT,
    correlation=TEXT,
)
STATES = st.builds(
    WireState,
    attempts=st.integers(0, 30),
    redeliveries=st.integers(0, 30),
    postponed=st.integers(0, 30),
    due=st.just(0.0) | st.floats(1.7e9, 1.9e9).map(lambda due: round(due, 3)),
    reason=st.none() | TEXT,
)
ALLOWED = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda each: st.lists(each, max_size=6) | st.dictionaries(TEXT, each, max_size=4),
    max_leaves=12,
)


def polled(encoded: Encoded, receives: int = 1) -> dict[str, object]:
    """A message as `ReceiveMessage` returns it."""
    return {
        "MessageId": "sqs-id",
        "ReceiptHandle": "handle",
        "Body": encoded.body,
        "Attributes": {"ApproximateReceiveCount": str(receives), "SentTimestamp": "1790000000000"},
        "MessageAttributes": typed(encoded.attributes),
    }


def recorded(encoded: Encoded, receives: int = 1) -> dict[str, object]:
    """The same message as a record of a Lambda event."""
    return {
        "messageId": "sqs-id",
        "receiptHandle": "handle",
        "body": encoded.body,
        "attributes": {"ApproximateReceiveCount": str(receives), "SentTimestamp": "1790000000000"},
        "messageAttributes": {
            name: {"stringValue": value, "dataType": "String", "binaryListValues": []}
            for name, value in encoded.attributes.items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:prod-judge-response-recorded",
    }


@given(MESSAGES, STATES, st.integers(1, 40))
def test_a_single_message_and_its_state_are_read_as_they_were_written(message, state, receives):
    encoded = encode([message], state)
    incoming = incoming_of(polled(encoded, receives))
    assert incoming.messages() == [message]
    assert replace(incoming.state, base64=False) == state
    assert incoming.redeliveries == state.redeliveries + receives - 1


@given(st.lists(MESSAGES, min_size=2, max_size=8), STATES)
def test_the_messages_of_a_batch_are_read_in_their_order(messages, state):
    incoming = incoming_of(polled(encode(messages, state)))
    expected = [Message(each.id, each.type, each.group, each.body) for each in messages]
    assert incoming.messages() == expected
    assert incoming.state.attempts == state.attempts


@given(st.lists(MESSAGES, min_size=1, max_size=4), STATES)
def test_a_record_of_a_function_is_the_same_message(messages, state):
    encoded = encode(messages, state)
    assert incoming_of(recorded(encoded)) == incoming_of(polled(encoded))


@given(st.lists(MESSAGES, min_size=1, max_size=4), STATES)
def test_sqs_takes_what_is_written(messages, state):
    encoded = encode(messages, state)
    assert ALLOWED.fullmatch(encoded.body)
    assert len(encoded.attributes) <= 10
    for name, value in encoded.attributes.items():
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,256}", name)
        assert ALLOWED.fullmatch(value)


@given(st.lists(MESSAGES, min_size=1, max_size=4), STATES, STATES)
def test_another_state_leaves_the_messages_as_they_are(messages, state, other):
    encoded = encode(messages, state)
    read = incoming_of(polled(encoded))
    kept = replace(other, parts=read.state.parts, base64=read.state.base64)
    again = incoming_of(polled(encoded.with_state(kept)))
    assert again.messages() == read.messages()
    assert again.state == kept


def test_a_full_batch_is_one_billed_request():
    body = json.dumps({"text": "x" * 2_000}).encode()
    messages = [Message(f"run-{n:032}", "t.v1", "provider/model", body) for n in range(200)]
    sizes = [encode(batch).size for batch in batches(messages, 200, most_bytes=BATCH_BYTES)]
    assert max(sizes) <= 64 * 1024
    assert min(sizes[:-1]) > BATCH_BYTES * 0.9


def test_a_model_s_text_with_characters_that_sqs_replaces_arrives_unchanged():
    message = Message("id-1", "t.v1", "model", '{"text": "\ufffe\uffff ok"}'.encode())
    encoded = encode([message])
    assert ALLOWED.fullmatch(encoded.body)
    assert incoming_of(polled(encoded)).messages() == [message]


def test_ordinary_events_can_be_read_by_a_person():
    message = Message("id-1", "t.v1", "provider/model", b'{"a": 1}', "runner", "run-1", "exp-1")
    assert encode([message]) == Encoded(
        '{"a": 1}',
        {
            "content-type": "application/cloudevents+json",
            "ce-type": "t.v1",
            "ce-id": "id-1",
            "ce-source": "runner",
            "ce-subject": "run-1",
            "ce-correlationid": "exp-1",
            "ce-partitionkey": "provider/model",
        },
    )


@given(MESSAGES, STATES)
def test_a_claim_keeps_everything_but_the_content(message, state):
    encoded = encode([message], state, claim="prod-claims/1")
    incoming = incoming_of(polled(encoded))
    assert incoming.state.claim == "prod-claims/1"
    assert incoming.messages(content_of([message])) == [message]
    assert encoded.size < MOST_BYTES


@given(TEXT, ANYTHING, ANYTHING)
def test_whatever_a_stranger_wrote_is_at_least_one_message(body, state, attribute):
    found = incoming_of(
        {
            "MessageId": "theirs",
            "Body": body,
            "MessageAttributes": {
                STATE: {"StringValue": json.dumps(state), "DataType": "String"},
                "ce-id": attribute,
            },
        }
    )
    assert found.messages()
    assert all(isinstance(each.id, str) and each.id for each in found.messages())


@given(ANYTHING, ANYTHING)
def test_parts_that_a_stranger_wrote_are_no_error(parts, attempts):
    state = json.dumps({"parts": parts, "attempts": attempts, "base64": True})
    found = incoming_of({"Body": "no base64", "MessageAttributes": {STATE: {"StringValue": state}}})
    assert found.messages()
