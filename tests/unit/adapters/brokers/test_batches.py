"""Batches hold everything in order, within their limits, and at least as many as share them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.adapters.brokers.batches import batches
from socratic_bench.events.codec import Message

MESSAGES = st.builds(Message, st.text(), st.just("t.v1"), st.text(), st.binary(max_size=200))


@given(st.lists(MESSAGES, max_size=30), st.integers(1, 7), st.integers(1, 400), st.integers(1, 5))
def test_batches_hold_everything_in_order_and_no_more_than_they_may(
    messages, size, most_bytes, shares
):
    split = list(batches(messages, size, most_bytes=most_bytes, shares=shares))
    assert [each for batch in split for each in batch] == messages
    assert all(1 <= len(batch) <= size for batch in split)
    assert all(
        len(batch) == 1 or sum(len(each.body) for each in batch) <= most_bytes for batch in split
    )
    assert max(map(len, split), default=0) <= -(-len(messages) // shares)
