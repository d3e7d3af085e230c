"""A message with its event, within the process that encoded it."""

import pytest

from socratic_bench.errors import InvalidEvent
from socratic_bench.events.codec import Message, encode, event_of, to_message
from tests.unit.events.examples import example_events


@pytest.mark.parametrize("event", example_events().values(), ids=list(example_events()))
def test_a_message_of_this_process_is_the_one_that_another_process_gets(event):
    message = to_message(event)
    received = Message(*message)
    assert message == received
    assert event_of(message) is event
    assert event_of(received) == event


def test_a_copy_with_another_body_carries_the_event_of_its_body():
    first, second, *_ = example_events().values()
    copy = to_message(first)._replace(body=encode(second))
    assert event_of(copy) == second
    with pytest.raises(InvalidEvent):
        event_of(copy._replace(body=b"{}"))
