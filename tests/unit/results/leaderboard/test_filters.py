"""The filters of results: which experiments fit, and how they are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Final

import pytest

from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import InvalidInput
from socratic_bench.results.filters import EVERYTHING, Filters, ids_called, written_time
from tests.dashboard.seeding import MONDAY, experiment, tutors

DAY = timedelta(days=1)
WEEKS = [
    ExperimentOutline.of(
        experiment(tutors(3 + week), occasion=f"{week}", created_at=MONDAY + 7 * week * DAY)
    )
    for week in range(3)
]


def fitting(filters: Filters) -> list[str | None]:
    return [each.occasion for each in filters.fitting(WEEKS)]


def test_without_a_filter_every_experiment_fits():
    assert not EVERYTHING
    assert EVERYTHING.key == ()
    assert fitting(EVERYTHING) == ["0", "1", "2"]


def test_the_time_begins_with_since_and_ends_before_until():
    created_at = WEEKS[1].created_at

    assert fitting(Filters(since=created_at)) == ["1", "2"]
    assert fitting(Filters(until=created_at)) == ["0"]
    assert fitting(Filters(since=created_at, until=created_at + DAY)) == ["1"]
    assert fitting(Filters(since=MONDAY + 100 * DAY)) == []


def test_an_experiment_fits_that_asks_one_of_the_models():
    newest = tutors(5)[-1].id

    assert fitting(Filters(models=(newest,))) == ["2"]
    assert fitting(Filters(models=(newest, tutors(3)[-1].id))) == ["0", "1", "2"]


def test_a_model_is_called_by_its_id_or_by_the_name_that_tables_show():
    named = [("a/x", "asker (ask)"), ("a/y", "a/x"), ("a/z", "asker (ask)")]
    told: Final = "the experiment has no"
    assert ids_called("model", ["asker (ask)"], named, told) == ("a/x", "a/z")
    assert ids_called("model", ["a/x"], named, told) == ("a/x",)
    with pytest.raises(InvalidInput, match=r'did you mean "asker \(ask\)"'):
        ids_called("model", ["asker (as"], named, told)


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (Filters(models=("provider-1/tutr-1",)), "model 'provider-1/tutr-1'; did you mean \"pro"),
        (Filters(dimension="ethics"), "dimension 'ethics'; did you mean \"ethical\"?"),
        (Filters(dimension="x"), 'dimension \'x\'; there are: "ambiguous", "ethical", '),
    ],
)
def test_a_name_that_no_experiment_has_is_a_mistake_and_the_known_ones_are_named(
    filters: Filters, told: str
):
    with pytest.raises(InvalidInput, match="no experiment has a") as raised:
        filters.fitting(WEEKS)

    assert told in str(raised.value)
    assert not filters.fitting(())


def test_a_date_is_a_whole_day_in_utc():
    assert written_time("since", "2026-03-02") == datetime(2026, 3, 2, tzinfo=UTC)
    assert written_time("until", "2026-03-02") == datetime(2026, 3, 3, tzinfo=UTC)
    assert Filters(
        since=written_time("since", "2026-03-02"), until=written_time("until", "2026-03-02")
    ).has_time(MONDAY)


def test_the_same_time_in_another_zone_gives_the_same_key():
    east = timezone(timedelta(hours=2))
    times = ["2026-03-02T10:00+02:00", "2026-03-02T08:00Z", "2026-03-02T08:00"]
    keys = {Filters(since=written_time("since", text)).key for text in times}

    assert len(keys) == 1
    assert written_time("since", times[0]) == datetime(2026, 3, 2, 10, tzinfo=east)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-02-30", "0001-01-01T00:00+14:00", "9" * 9])
def test_what_is_no_time_is_refused_by_the_name_of_its_parameter(text: str):
    with pytest.raises(InvalidInput, match=r"^since: must be a date such as 2026-11-23"):
        written_time("since", text)


def test_the_last_day_of_all_has_no_end():
    with pytest.raises(InvalidInput, match=r"^until: must be a date"):
        written_time("until", "9999-12-31")


@pytest.mark.parametrize("until", [MONDAY, MONDAY - DAY])
def test_a_time_that_ends_before_it_begins_is_refused(until: datetime):
    with pytest.raises(InvalidInput, match=r"^until: must be later than since"):
        Filters(since=MONDAY, until=until)
