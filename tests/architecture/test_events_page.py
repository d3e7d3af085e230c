"""The page of the events is the one that the code generates."""

from pathlib import Path

from tests.architecture.events_page import page

PAGE = Path(__file__).parents[2] / "docs" / "events.md"


def test_the_page_of_the_events_is_up_to_date():
    assert PAGE.read_text() == page(), "python -m tests.architecture.events_page > docs/events.md"
