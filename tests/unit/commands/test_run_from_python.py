"""`await run(...)`: its result in a notebook, and an interrupted cell."""

import asyncio
import dataclasses
import gc
import io
import json
import subprocess
import sys
from statistics import mean
from typing import Any

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.errors import InvalidConfig, MissingExtra, UnknownExperiment
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.results.formats import interval
from socratic_cli import load, run
from socratic_cli.benchmark_run import StoreInUse
from tests.waiting import waiting_for

SMALL: dict[str, Any] = {
    "models": ["reference/socratic", "reference/lecturer"],
    "scenarios": ["student-bigger-fraction", "student-empty-lines"],
    "repeats": 2,
}


def slow(milliseconds, repeats=20):
    model = {
        "id": "reference/socratic",
        "options": {"latency_ms": milliseconds},
        "limits": {"concurrency": 2},
    }
    return {"models": [model], "scenarios": ["student-bigger-fraction"], "repeats": repeats}


async def stored(path, experiment_id):
    """How many calls the store counts, and how many runs are done."""
    store = SqlStore.from_url(f"sqlite:///{path}")
    try:
        calls = await store.calls(experiment_id)
        return calls.calls, (await store.progress(experiment_id)).done
    finally:
        await store.close()


async def only_experiment(path):
    store = SqlStore.from_url(f"sqlite:///{path}")
    try:
        [outline] = await store.outlines()
        return outline.experiment_id
    finally:
        await store.close()


async def test_it_gives_every_response_with_its_scores_in_the_order_of_the_plan(tmp_path):
    told: list[Progress] = []
    result = await run(SMALL, store=tmp_path / "n.db", on_progress=told.append)
    assert result.finished
    assert told[-1] == result.progress
    assert (result.failures, result.dead_letters) == ((), ())
    assert [(row.repeat, row.scenario, row.model) for row in result.responses] == [
        (repeat, scenario, model)
        for repeat in (1, 2)
        for scenario in SMALL["scenarios"]
        for model in SMALL["models"]
    ]
    first = result.responses[0]
    assert (first.dimension, first.turn, first.status) == ("student", 1, "ok")
    assert first.text
    assert first.vectors is not None
    assert set(first.vectors) == set(result.comparison.vectors)
    assert first.overall == pytest.approx(mean(value or 0.0 for value in first.vectors.values()))
    means = {
        model: [row.overall or 0.0 for row in result.responses if row.model == model]
        for model in SMALL["models"]
    }
    for figures in result.comparison.models:
        assert figures.overall_score == pytest.approx(
            sum(means[figures.model_id]) / len(means[figures.model_id])
        )
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.experiment_id = "another"  # type: ignore[misc]


async def test_a_stored_experiment_loads_as_the_same_result(tmp_path):
    ran = await run(SMALL, store=tmp_path / "n.db")
    loaded = await load(ran.experiment_id, store=tmp_path / "n.db")
    assert loaded == ran
    assert all(row.student_message and row.output_tokens for row in loaded.responses)
    with pytest.raises(UnknownExperiment, match="there is no experiment 'another'"):
        await load("another", store=tmp_path / "n.db")


async def test_a_notebook_shows_a_table_in_which_names_are_text(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    model = {"id": "reference/socratic", "name": "<script>alert(1)</script>\u202e"}
    result = await run({"models": [model], "repeats": 1}, store=tmp_path / "n.db")
    assert result.responses[0].model_name == model["name"]
    shown = result._repr_html_()
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;\ufffd</td>" in shown
    assert "<script" not in shown
    assert "15 of 15 runs done" in shown
    assert f"<td>{interval(result.comparison.rows[0].confidence_interval)}</td>" in shown
    assert repr(result) == f"RunResult({result.experiment_id}: 15 of 15 runs done, 0 failed)"
    *drawn, end = capsys.readouterr().out.removeprefix("\r").split("\r")
    assert end.endswith("\u2588 15 of 15 runs\n")
    assert len(set(drawn)) == len(drawn)


async def test_a_failing_model_is_told_in_plain_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.jsonl").write_text(
        json.dumps({"scenario_id": SMALL["scenarios"][0], "repeat": 1, "text": "Why?"})
    )
    await run({**SMALL, "models": ["replay/answers.jsonl"]}, store="n.db")
    output = capsys.readouterr()
    assert "Warning: model in trouble" in output.err
    assert "\x1b" not in output.out + output.err


async def test_a_file_and_a_mapping_make_the_same_experiment_which_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("SOCRATIC_STORE_URL", f"sqlite:///{tmp_path}/n.db")
    (tmp_path / "mine.yaml").write_text(json.dumps(SMALL))
    given, read = await run(SMALL), await run(str(tmp_path / "mine.yaml"))
    assert given.responses == read.responses
    assert await stored(tmp_path / "n.db", given.experiment_id) == (8, 8)


async def test_a_run_that_failed_is_among_the_failures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answered, unanswered = SMALL["scenarios"]
    answer = {"scenario_id": answered, "repeat": 1, "text": "What could you divide by?"}
    (tmp_path / "answers.jsonl").write_text(json.dumps(answer))
    result = await run({**SMALL, "models": ["replay/answers.jsonl"]}, store="n.db")
    assert result.finished
    assert {(row.scenario, row.text) for row in result.responses} == {(answered, answer["text"])}
    failed = [(each.scenario, each.kind, each.turn) for each in result.failures]
    assert set(failed) >= {(unanswered, "not_found", 1)}
    assert len(result.responses) + len(failed) == result.progress.planned == 4
    assert all(each.message and each.attempts for each in result.failures)


async def test_a_cancelled_run_stores_what_is_in_flight_and_goes_on_later(tmp_path):
    config, path, begun = slow(200), tmp_path / "n.db", asyncio.Event()

    def note(progress):
        if progress.done:
            begun.set()

    task = asyncio.create_task(run(config, store=path, on_progress=note))
    async with waiting_for("the first response"):
        await begun.wait()
    task.cancel()
    async with waiting_for("the end of the cancelled run"):
        with pytest.raises(asyncio.CancelledError):
            await task
    calls, done = await stored(path, await only_experiment(path))
    assert 0 < calls < 20
    assert done == calls
    result = await run(slow(200), store=path)
    assert result.finished
    assert await stored(path, result.experiment_id) == (20, 20)


async def test_the_bar_of_a_cancelled_run_says_how_to_go_on(tmp_path, monkeypatch):
    begun = asyncio.Event()

    class Watched(io.StringIO):
        def write(self, text):
            begun.set()
            return super().write(text)

    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(sys, "stdout", shown := Watched())
    task = asyncio.create_task(run(slow(200), store=tmp_path / "n.db"))
    async with waiting_for("the bar"):
        await begun.wait()
    task.cancel()
    async with waiting_for("the end of the cancelled run"):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert shown.getvalue().endswith(" of 20 runs; the same call continues\n")


async def test_a_second_cancellation_ends_at_once(tmp_path):
    begun = asyncio.Event()
    config = slow(60_000, repeats=2)
    task = asyncio.create_task(
        run(config, store=tmp_path / "n.db", on_progress=lambda _: begun.set())
    )
    async with waiting_for("the benchmark"):
        await begun.wait()
        for _ in range(2):
            task.cancel()
            for _ in range(10):  # turns of the loop until the run has met it
                await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_an_error_of_the_listener_comes_after_what_is_in_flight_is_stored(tmp_path):
    path = tmp_path / "n.db"

    def fail(progress):
        if progress.done:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run(slow(100), store=path, on_progress=fail)
    calls, done = await stored(path, await only_experiment(path))
    assert 0 < calls < 20
    assert done == calls


async def test_two_runs_at_once_need_two_stores_and_leave_the_collector_as_it_was(tmp_path):
    before, begun = gc.get_threshold(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run(slow(20), store=tmp_path / "a.db", on_progress=lambda _: begun.set()))
        await begun.wait()
        tasks.create_task(run(slow(20), store=tmp_path / "b.db"))
        with pytest.raises(StoreInUse, match="another benchmark is running"):
            await run(SMALL, store=tmp_path / "a.db")
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"models": ["reference/nobody"]}, r"^the configuration, models\[0\]: "),
        ({"models": {1, 2}}, "holds a value that JSON cannot hold"),
        ("nowhere.yaml", "there is no such file"),
    ],
)
async def test_a_mistake_is_an_error_of_the_hierarchy(tmp_path, monkeypatch, config, problem):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidConfig, match=problem):
        await run(config)
    assert list(tmp_path.iterdir()) == []


PANDAS = """
class DataFrame:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
"""


async def test_the_responses_become_a_data_frame_where_pandas_is_installed(tmp_path, monkeypatch):
    result = await run(SMALL, store=tmp_path / "n.db")
    monkeypatch.setattr("socratic_bench.plugins.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"to_pandas\(\) needs pandas, .* pip install 'pandas'"):
        result.to_pandas()
    monkeypatch.undo()
    (tmp_path / "pandas.py").write_text(PANDAS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    frame = result.to_pandas()
    del sys.modules["pandas"]
    assert frame.columns[:5] == ["model", "scenario", "dimension", "repeat", "turn"]
    assert frame.columns[-3:] == ["verbosity", "exploratory", "interrogative"]
    assert [list(row) for row in frame.rows] == [frame.columns] * 8
    assert frame.rows[0]["verbosity"] == result.responses[0].vectors["verbosity"]


def test_the_package_alone_imports_nothing_that_is_slow():
    program = "import sys, socratic_cli; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not set(done.stdout.split()) & {"pydantic", "asyncio", "click", "socratic_cli.notebook"}
