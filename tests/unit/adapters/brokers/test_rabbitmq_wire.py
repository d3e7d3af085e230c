"""from_amqp reverses to_amqp, and also reads messages of foreign clients."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.adapters.brokers.rabbitmq.wire import from_amqp, to_amqp
from socratic_bench.events.codec import Message

TEXT = st.text(max_size=40)
MESSAGES = st.tuples(TEXT.filter(bool), st.just("t.v1"), TEXT, st.binary(max_size=200)).map(
    lambda values: Message(*values)
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXT | st.binary(max_size=20),
    lambda each: st.lists(each, max_size=6),
    max_leaves=12,
)


def incoming(body, headers, message_id="id-1"):
    return SimpleNamespace(body=body, headers=headers, type="t.v1", message_id=message_id)


@given(st.lists(MESSAGES, min_size=1, max_size=8))
def test_what_is_packed_is_unpacked_in_its_order(messages):
    sent = to_amqp(messages)
    assert from_amqp(incoming(sent.body, sent.headers)) == messages


@given(st.binary(max_size=60), ANYTHING, ANYTHING)
def test_whatever_a_stranger_wrote_is_at_least_one_message(body, parts, group):
    found = from_amqp(incoming(body, {"socratic-parts": parts, "socratic-group": group}))
    assert found
    assert {type(text) for each in found for text in (each.id, each.group)} == {str}
