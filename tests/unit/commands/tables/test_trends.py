"""The tables of trends: what a difference of two experiments says, and what it does not."""

from __future__ import annotations

import io
import re

import click
import pytest
from rich.console import Console, RenderableType

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.results.trends.timeseries import timeseries
from socratic_cli.commands.trends import (
    DETECTABLE,
    DIFFER,
    fail_on_drop,
    model_trend_table,
    trends_table,
)
from tests.unit.results.test_trend_changes import MODEL, measure


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def text_of(table: RenderableType) -> str:
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


async def test_a_fall_says_that_two_experiments_differ_not_that_the_model_changed(
    store: MemoryStore,
) -> None:
    for week, score in enumerate((0.8, 0.8, 0.5)):
        await measure(store, week, score, version=f"v{week}")

    every = await timeseries(store)
    one = await timeseries(store, MODEL)

    for text in (text_of(trends_table(every)), text_of(model_trend_table(one))):
        assert re.search(r"\u22120\.(29|30|31)\*", text)
        assert DIFFER in text
        assert "since the change" not in text
    assert re.search(r"These experiments differ: 0\.(29|30|31) less after than before", text)


async def test_a_change_point_is_one_line_of_its_model(store: MemoryStore) -> None:
    for week in range(9):
        await measure(store, week, 0.7 if week < 4 else 0.5)

    every = await timeseries(store)
    lines = text_of(trends_table(every)).splitlines()
    [line] = [each for each in lines if "Falls by 0.20" in each]
    assert line.startswith("hosted/tutor, 2026-03-02 to 2026-04-27: Falls by 0.20 between 2026-03-")
    one = await timeseries(store, MODEL)
    assert line.removeprefix("hosted/tutor, ") in text_of(model_trend_table(one))


async def test_a_fall_of_the_newest_points_fails_a_job_and_a_rise_does_not(
    store: MemoryStore, capsys: pytest.CaptureFixture[str]
) -> None:
    for week in range(9):
        await measure(store, week, 0.5 if week < 4 else 0.7)
    fail_on_drop(await timeseries(store), None)
    for week in range(9, 27):
        await measure(store, week, 0.3)

    with pytest.raises(click.exceptions.Exit) as stopped:
        fail_on_drop(await timeseries(store), None)
    assert stopped.value.exit_code == 1
    told = capsys.readouterr().err.splitlines()
    assert told == ["Drops in 1 model: none.", "Drops in 1 model: hosted/tutor."]

    await measure(store, 27, 0.3, prompt="Ask.")
    fail_on_drop(await timeseries(store), None)


async def test_the_detectable_change_is_that_of_the_newest_points_that_join(
    store: MemoryStore,
) -> None:
    for week in range(5):
        await measure(store, week, 0.7)
    one = await timeseries(store, MODEL)
    [least] = one.models[0].detectable_changes
    assert least.finding in text_of(model_trend_table(one))
    shown = text_of(trends_table(await timeseries(store)))
    assert shown.splitlines()[1].rstrip().endswith(f" {least.least:.2f}")
    assert DETECTABLE in shown

    await measure(store, 5, 0.7, prompt="Ask.")
    shown = text_of(trends_table(await timeseries(store)))
    assert shown.splitlines()[1].rstrip().endswith(" \u2013")
    assert DETECTABLE not in shown


async def test_points_that_chance_may_explain_have_no_mark(store: MemoryStore) -> None:
    for week in range(3):
        await measure(store, week, 0.6)

    assert "*" not in text_of(trends_table(await timeseries(store)))
