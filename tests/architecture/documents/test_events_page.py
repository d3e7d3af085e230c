"""The page of the events is the one that the code generates."""

from pathlib import Path

from tests.architecture.documents.events_page import page

PAGE = Path(__file__).parents[3] / "docs" / "events.md"


def test_the_page_of_the_events_is_up_to_date():
    assert PAGE.read_text() == page(), (
        "python -m tests.architecture.documents.events_page > docs/events.md"
    )
