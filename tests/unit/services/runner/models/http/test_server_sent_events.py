"""Events come out of a stream the same, however the network splits its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_runner.models.http.reading import Event, EventDecoder


def decoded(*pieces: bytes) -> list[Event]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


PARTS = st.sampled_from(
    [
        b"data",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"event",
        b"\xef\xbb\xbf",
        b"\xef",
        b"{}",
        b"x",
        b"",
    ]
)
STREAMS = st.lists(PARTS, max_size=40).map(b"".join) | st.binary(max_size=60)


@given(stream=STREAMS, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_any_split_of_the_bytes_gives_the_same_events(stream: bytes, cuts: list[int]):
    places = sorted(min(cut, len(stream)) for cut in cuts)
    pieces = [
        stream[begin:end] for begin, end in zip([0, *places], [*places, len(stream)], strict=True)
    ]
    assert decoded(*pieces) == decoded(stream)
    assert decoded(*(bytes([byte]) for byte in stream)) == decoded(stream)


TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)


@given(
    lines=st.lists(TEXTS, min_size=1, max_size=4),
    name=TEXTS,
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_what_was_written_is_read(lines: list[str], name: str, newline: str):
    written = [f"event: {name}", *(f"data: {line}" for line in lines), "", ""]
    expected = Event(name, "\n".join(lines).encode())
    assert decoded(newline.join(written).encode()) == [expected]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [Event("", b"a"), Event("", b"b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("", b"a")]),
        (b": OPENROUTER PROCESSING\n\ndata: a\n\n", [Event("", b"a")]),
        (b"data:a\n\n", [Event("", b"a")]),
        (b"data:  a\n\n", [Event("", b" a")]),
        (b"data\n\n", [Event("", b"")]),
        (b"event: ping\n\ndata: a\n\n", [Event("", b"a")]),
        (b"id: 1\nretry: 2\ndata: a\n\n", [Event("", b"a")]),
        (b"data: a\n", []),
        (b"data: \xff\n\n", [Event("", b"\xff")]),
    ],
)
def test_the_odd_streams_of_the_standard(stream: bytes, events: list[Event]):
    assert decoded(stream) == events
