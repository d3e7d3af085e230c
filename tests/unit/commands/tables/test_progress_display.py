"""Progress without a terminal: an occasional line, and a failing model at once."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest
from rich.console import Console

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.money import Price
from socratic_bench.domain.trouble import Trouble
from socratic_cli.display import progress as progress_display
from socratic_cli.display.progress import LINE_SECONDS, ProgressDisplay
from socratic_cli.display.terminal import say
from tests.contract.store.facts import a_failure, a_score, an_experiment

PLANNED = an_experiment()
PRICE = Price(input_per_million=Decimal(3), output_per_million=Decimal(15))
PRICED = tuple(each.model_copy(update={"price": PRICE}) for each in PLANNED.manifest.models)
MANIFEST = PLANNED.manifest.model_copy(update={"models": PRICED})
EXPERIMENT = PLANNED.model_copy(update={"manifest": MANIFEST})
ID = EXPERIMENT.experiment_id
MODELS = [model.id for model in EXPERIMENT.manifest.models]


@pytest.fixture
async def store():
    store = MemoryStore()
    await store.register(EXPERIMENT)
    yield store
    await store.close()


@pytest.fixture
def clock(monkeypatch):
    class Time:
        now = 0.0

        def monotonic(self):
            return self.now

    time = Time()
    monkeypatch.setattr(progress_display, "time", time)
    return time


def trouble(model_id=MODELS[0], reason="connection refused"):
    return Trouble(
        experiment_id=ID,
        model_id=model_id,
        kind="unreachable",
        reason=reason,
        attempt=1,
        attempts=12,
        next_in_seconds=0.3,
    )


async def test_in_a_pipe_there_is_a_line_each_half_minute_and_none_before(store, clock, capsys):
    with ProgressDisplay(EXPERIMENT, store) as display:
        for seconds in range(0, 100, 10):
            clock.now = seconds
            if seconds == 40:
                runs = EXPERIMENT.runs()
                await store.fold([a_score(next(runs))], [a_failure(next(runs))])
                await store.heartbeat("runner", [], [trouble()])
            await display.update(await store.progress(ID))
    assert LINE_SECONDS == 30
    out, err = capsys.readouterr()
    assert out == ""
    paid = "paid $0.00, simulated where reference tutors have prices"
    told = f"{MODELS[0]}: connection refused (attempt 1 of 12, next in 1 s)"
    line = (
        f"2 of 12 runs done, 1 failed, 0 calls, {paid}; "
        f"in trouble: {MODELS[0]} (unreachable 1/12); so far: {MODELS[0]} 0.75 (1/6)"
    )
    assert err.splitlines() == [
        f"0 of 12 runs done, none failed, 0 calls, {paid}",
        told,
        line,
        line,
    ]


async def test_a_trouble_is_told_at_once_and_once(store, capsys):
    present = [trouble()]

    async def find():
        return present

    with ProgressDisplay(EXPERIMENT, store, find) as display:
        for _ in range(3):
            await display.update(await store.progress(ID))
        present.append(trouble(MODELS[1], "a\x1b[2Jb"))
        await display.update(await store.progress(ID))
    assert capsys.readouterr().err.splitlines() == [
        f"{MODELS[0]}: connection refused (attempt 1 of 12, next in 1 s)",
        f"{MODELS[1]}: a\ufffd[2Jb (attempt 1 of 12, next in 1 s)",
    ]


@pytest.fixture
def screen(monkeypatch):
    shown = io.StringIO()
    console = Console(
        file=shown, force_terminal=True, width=100, markup=False, highlight=False, emoji=False
    )
    monkeypatch.setattr(progress_display, "standard_error", lambda: console)
    return shown


async def test_on_a_terminal_a_trouble_stands_above_the_table_as_plain_text(store, screen):
    async def find():
        return [trouble(reason="[red]refused[/red] :smile:")]

    with ProgressDisplay(EXPERIMENT, store, find) as display:
        for _ in range(2):
            await display.update(await store.progress(ID))
    shown = screen.getvalue()
    told = f"{MODELS[0]}: [red]refused[/red] :smile: (attempt 1 of 12, next in 1 s)"
    assert shown.count(told) == 1
    assert "(unreachable" in shown


async def test_on_a_terminal_the_leaderboard_grows_with_the_runs(store, clock, screen):
    runs = list(EXPERIMENT.runs())
    with ProgressDisplay(EXPERIMENT, store) as display:
        await display.update(await store.progress(ID))
        assert "0/6" in screen.getvalue()
        clock.now = 1
        await store.fold([a_score(runs[0])], [])
        await display.update(await store.progress(ID))
    [row] = [line for line in screen.getvalue().splitlines() if "1/6" in line][-1:]
    assert runs[0].model_id in row
    assert "0.75" in row
    assert "1/12" in screen.getvalue()  # all runs, beside the bar


async def test_a_sentence_of_the_command_stands_above_the_table(store, clock, screen):
    with ProgressDisplay(EXPERIMENT, store) as display:
        await display.update(await store.progress(ID))
        say("Stopping: calls in flight are finished and stored.")
        clock.now = 1
        await display.update(await store.progress(ID))
    *_, before = screen.getvalue().partition("Stopping: calls in flight are finished and stored.")
    assert "0/6" in before


async def test_the_leaderboard_is_read_once_a_second_and_only_where_the_store_has_changed(
    store, clock, screen, monkeypatch
):
    read = []
    cells = store.cells

    async def counted(ids, **chosen):
        read.append(await cells(ids, **chosen))
        return read[-1]

    monkeypatch.setattr(store, "cells", counted)
    with ProgressDisplay(EXPERIMENT, store) as display:
        for clock.now in (0, 0.5, 1, 2):
            await display.update(await store.progress(ID))
        await store.fold([a_score(next(iter(EXPERIMENT.runs())))], [])
        for clock.now in (2.5, 3, 3.5, 4):
            await display.update(await store.progress(ID))
    assert [len(each) for each in read] == [0, 1]


async def test_a_deleted_experiment_ends_the_table_and_not_the_command(store, clock, screen):
    with ProgressDisplay(EXPERIMENT, store) as display:
        progress = await store.progress(ID)
        await display.update(progress)
        await store.change_state(ID, ExperimentState.DELETED)
        clock.now = 1
        await display.update(progress)
    assert "0 of 12 runs done" in screen.getvalue()
