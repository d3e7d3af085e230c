"""The page of the events describes each event, its consumers and all of its fields."""

import re
from pathlib import Path
from typing import get_args

import pytest

from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.domain.grading import Grading
from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import Run
from socratic_bench.events.codec import Event
from socratic_bench.events.event_types import Envelope, kind_of
from socratic_bench.scoring.exchange import EarlierTurn

PAGE = (Path(__file__).parents[3] / "docs" / "events.md").read_text()


def section(heading: str) -> str:
    """The text below a heading, up to the next one."""
    return PAGE.partition(f"# {heading}\n")[2].partition("\n#")[0]


def fields(heading: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", section(heading), re.MULTILINE)


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.__name__)
def test_an_event_stands_there_with_its_consumers_and_its_fields(event: type[Envelope]) -> None:
    event_type = event.model_fields["type"].default
    heading = f"`{kind_of(event_type)}`"
    data = event.model_fields["data"].annotation
    assert data is not None
    assert fields(heading) == list(data.model_fields)
    assert f"`{event_type}`" in section(heading)
    consumers = [f"`{queue.name}`" for queue in WORK_QUEUES if queue.event_type == event_type]
    assert all(consumer in section(heading) for consumer in consumers or ["(broadcast)"])


@pytest.mark.parametrize("part", [Run, Usage, EarlierTurn, Grading])
def test_a_part_of_several_events_stands_there_with_its_fields(part: type) -> None:
    assert fields(part.__name__) == list(part.__annotations__)


def test_the_attributes_of_every_event_stand_there() -> None:
    assert set(fields("Attributes of every event")) == Envelope.model_fields.keys() - {
        "type",
        "data",
    }
