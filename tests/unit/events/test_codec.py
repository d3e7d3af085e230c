"""Encoded events can be read by us and by others, today and later."""

import json
from pathlib import Path
from typing import get_args

import pytest
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.run import Run
from socratic_bench.errors import InvalidEvent
from socratic_bench.events import codec
from socratic_bench.events.codec import EVENT_TYPES, Event, decode, encode
from socratic_bench.events.event_types import RunRequested
from socratic_bench.scoring.profile import MOST_VECTORS
from tests.unit.events.examples import RUN, TIME, example_events

GOLDEN = Path(__file__).parents[2] / "golden" / "events" / "v1"
EXAMPLES = example_events()


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_encoded_is_decoded_to_the_same_event(name):
    assert decode(encode(EXAMPLES[name])) == EXAMPLES[name]


def without_additions(encoded, published):
    """`encoded` without later fields, which are empty in these examples."""
    if not isinstance(published, dict):
        return encoded
    return {
        name: without_additions(value, published.get(name))
        for name, value in encoded.items()
        if name in published or value is not None
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_published_payloads_of_this_version_stay_readable_and_unchanged(name):
    golden = (GOLDEN / f"{name}.json").read_bytes()
    published = json.loads(golden)
    assert decode(golden) == EXAMPLES[name]
    assert without_additions(json.loads(encode(EXAMPLES[name])), published) == published


def test_a_key_that_is_empty_stands_in_no_event_and_one_that_is_not_is_read_again():
    event = EXAMPLES["response.recorded"]
    assert b"answer_key" not in encode(event)
    keyed = event.model_copy(
        update={"data": event.data.model_copy(update={"answer_key": ("0 N", "zero")})}
    )
    assert decode(encode(keyed)) == keyed


def test_every_event_type_has_an_example_and_a_place_in_the_union():
    in_union = {get_args(event.model_fields["type"].annotation)[0] for event in get_args(Event)}
    assert in_union == set(EVENT_TYPES) == {event.type for event in EXAMPLES.values()}
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_cloudevents_sdk_reads_what_we_publish(name):
    event = EXAMPLES[name]
    read = JSONFormat().read(None, encode(event))
    assert (read.get_id(), read.get_type(), read.get_source()) == (
        event.id,
        event.type,
        event.source,
    )
    assert read.get_extension("partitionkey") == event.partitionkey
    assert read.get_data()


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_reader_ignores_attributes_a_later_version_adds(name):
    body = json.loads(encode(EXAMPLES[name]))
    body["newattribute"] = "x"
    body["data"]["new_field"] = {"a": 1}
    assert decode(json.dumps(body).encode()) == EXAMPLES[name]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "is not JSON: "),
        (b"[]", "must be a mapping"),
        (b'{"type": "org.other.thing"}', "org.other.thing"),
        (b'{"id": "x"}', "has no 'type'"),
    ],
)
def test_what_is_no_event_is_refused_with_the_reason(body, sentence):
    with pytest.raises(InvalidEvent) as refused:
        decode(body)
    assert sentence in str(refused.value)


def test_a_wrong_field_is_named_by_its_place():
    body = json.loads(encode(EXAMPLES["response.scored"]))
    body["data"]["run"]["repeat"] = "no"
    with pytest.raises(InvalidEvent, match=r"data\.run\.repeat: must be a whole number$"):
        decode(json.dumps(body).encode())


def test_the_id_of_an_event_does_not_depend_on_the_clock_or_the_publisher():
    later = TIME.replace(year=2030)
    first = RunRequested.of(RUN, source="a", time=TIME)
    assert RunRequested.of(RUN, source="b", time=later).id == first.id


@given(st.text(), st.text(min_size=1), st.integers(1, 10**5))
def test_any_text_survives_the_journey(dimension, model_id, repeat):
    run = Run(
        run_id="run-x",
        experiment_id="exp-x",
        model_id=model_id,
        scenario_id="s",
        dimension=dimension,
        repeat=repeat,
    )
    event = RunRequested.of(run, source="test", time=TIME)
    assert decode(encode(event)) == event


SCORED = json.loads(encode(EXAMPLES["response.scored"]))


def scored_with(**changes):
    return json.dumps({**SCORED, "data": {**SCORED["data"], **changes}}).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"overall": 7.0},
        {"overall": -3},
        {"overall": 1e300},
        {"overall": float("nan")},
        {"overall": float("inf")},
        {"vectors": {"verbosity": 1.0000001}},
        {"vectors": {"verbosity": float("nan")}},
        {"turn": 2**31},
        {"turn": 0},
    ],
)
def test_a_score_that_is_none_is_no_event(changes):
    with pytest.raises(InvalidEvent):
        decode(scored_with(**changes))


@pytest.mark.parametrize("overall", [0, 1, 0.5, None])
def test_the_ends_of_the_scale_are_on_it(overall):
    assert decode(scored_with(overall=overall)).data.overall == overall


@pytest.mark.parametrize(
    ("name", "field", "bad"),
    [
        ("response.recorded", "earlier_turns", [1] * 100_000),
        ("aggregate.updated", "models", [1] * 100_000),
    ],
)
def test_reading_ends_at_the_first_mistake_of_very_many(name, field, bad):
    event = json.loads(encode(EXAMPLES[name]))
    event["data"][field] = bad
    with pytest.raises(InvalidEvent) as caught:
        decode(json.dumps(event).encode())
    assert f"{field}.0: " in str(caught.value)
    assert "more)" not in str(caught.value)


@pytest.mark.parametrize(("field", "bad"), [("vectors", 7), ("counts", -7)])
def test_a_mapping_of_very_many_entries_is_one_mistake(field, bad):
    with pytest.raises(InvalidEvent) as caught:
        decode(scored_with(**{field: {f"v{number}": bad for number in range(100_000)}}))
    assert f"data.{field}: must have at most 1,000 entries, not 100,000" in str(caught.value)
    assert "more)" not in str(caught.value)


@pytest.mark.parametrize(("field", "most"), [("vectors", 0.5), ("counts", 7)])
def test_a_mapping_may_have_as_many_entries_as_a_profile_has_vectors(field, most):
    entries = {f"v{number}": most for number in range(MOST_VECTORS)}
    assert getattr(decode(scored_with(**{field: entries})).data, field) == entries


def test_what_is_larger_than_any_event_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(codec, "MOST_BYTES", 100)
    with pytest.raises(InvalidEvent, match="larger than 100 bytes"):
        decode(b"[" * 101)
