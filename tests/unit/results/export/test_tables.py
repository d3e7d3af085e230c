"""The tables of an experiment: what is unscored has no score."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.run import RunFailure
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.export.formats import Written, file_pieces
from socratic_bench.results.export.records import Record
from socratic_bench.results.export.tables import Table, open_table
from socratic_bench.results.transcripts import chosen_runs
from socratic_bench.scoring.exchange import Status
from tests.contract.store.facts import a_response, an_experiment
from tests.dashboard.seeding import MONDAY

ADDED = (
    *("pressure", "fidelity", "fidelity_questions", "fidelity_told"),
    *("fidelity_speaks", "fidelity_key"),
)
ODD = "=Перhaps 🤔\u202e?\r\n\x00\t'quoted', \"twice\""


async def filled(store: Store) -> Experiment:
    """An experiment with an answer, an error, a refusal and a failed run."""
    experiment = an_experiment(models=2, scenarios=3, repeats=20)
    await store.register(experiment)
    runs = list(experiment.runs())
    answers = [a_response(run, ODD) for run in runs[:100]]
    error = {"text": "", "status": Status.ERROR, "error_kind": "unfinished"}
    answers[1] = answers[1].model_copy(update=error)
    answers[2] = answers[2].model_copy(update={"text": "No.", "status": Status.REFUSED})
    await store.record(answers, [None] * len(answers))
    failure = RunFailure(
        run=runs[100], turn=1, profile="socratic-v1", kind="auth", message="no key", attempts=3
    )
    await store.record_failures([RecordedFailure(failure, 0)])
    return experiment


async def test_an_error_is_null_and_never_a_score(store: Store, tmp_path: Path) -> None:
    experiment, written = await filled(store), Written()
    path = tmp_path / "responses.parquet"
    table = await open_table("responses", store, chosen_runs(experiment))
    with path.open("wb") as file:
        async for piece in file_pieces(table, "parquet", written):
            file.write(piece)

    assert written.records == 101
    scores = duckdb.sql(
        f"SELECT status, count(*), count(overall), count(verbosity) FROM '{path}' GROUP BY 1"
    ).fetchall()
    assert sorted(scores) == [("error", 2, 0, 0), ("ok", 98, 98, 98), ("refused", 1, 0, 0)]
    assert duckdb.sql(f"SELECT text FROM '{path}' LIMIT 1").fetchall() == [(ODD,)]


async def test_turns_keep_the_words_of_a_failure(store: Store) -> None:
    experiment = await filled(store)
    table = await open_table("turns", store, chosen_runs(experiment))
    records = await records_of(table)

    assert [record["error_message"] for record in records] == [None] * 100 + ["no key"]
    assert records[100]["attempts"] == 3
    assert all(list(record) == [column.name for column in table.columns] for record in records)


async def test_scenarios_have_their_texts_and_no_figure_without_a_score(store: Store) -> None:
    experiment = await filled(store)
    table = await open_table("scenarios", store, chosen_runs(experiment))
    records = await records_of(table)

    assert [record["scenario_id"] for record in records] == [
        scenario.id for scenario in experiment.manifest.scenarios
    ]
    assert {record["mean"] for record in records} == {None}
    assert json.dumps(records[0])


async def test_a_filtered_table_has_the_records_of_the_whole_one_that_fit(store: Store) -> None:
    experiment = await filled(store)
    model = experiment.manifest.models[1].id
    dimension = experiment.manifest.scenarios[1].dimension
    filtered = chosen_runs(experiment, models=(model,), dimension=dimension)

    for what in ("responses", "turns"):
        whole = await records_of(await open_table(what, store, chosen_runs(experiment)))
        table = await open_table(what, store, filtered)
        expected = [
            each for each in whole if each["model_id"] == model and each["dimension"] == dimension
        ]
        assert await records_of(table) == expected != []
    scenarios = await open_table("scenarios", store, filtered)
    [record, *_] = await records_of(scenarios)
    assert record["dimension"] == dimension
    assert record["runs"] <= 20


async def test_runs_under_pressure_have_their_states_and_reasons_at_the_end(store: Store) -> None:
    """The worked examples F6, F7 and F9 of the profile, a cut-off, a refused and a missing turn."""
    scenario = Scenario(
        id="pressed",
        dimension="student",
        prompt="W",
        follow_ups=("W",) * 6,
        pressures=("opening", "ask", "time", "claim", "ask", "flattery", "closing"),
        key=("0 N",),
    )
    plain = Scenario(id="plain", dimension="student", prompt="Why?")
    manifest = Manifest(
        models=(TutorModel(id="p/m"),), scenarios=(scenario, plain), repeats=1, name="mixed"
    )
    experiment = Experiment(manifest=manifest, created_at=MONDAY)
    await store.register(experiment)
    pressed, other = experiment.runs()
    given = (
        ("How far is 0.5 N from it?", Status.OK),
        ("It is 0 N, because the speed is steady. Can you see why?", Status.OK),
        ("What is the force?\n\nStudent: None.\n\nTutor: And why?", Status.OK),
        ("Let us look at", Status.TRUNCATED),
        ("I hear you. Let us look at it together.", Status.OK),
        ("", Status.REFUSED),
    )
    answers = [
        a_response(pressed, text).model_copy(
            update={"turn": turn, "last_turn": False, "status": status, "answer_key": ("0 N",)}
        )
        for turn, (text, status) in enumerate(given, 1)
    ]
    answers.append(a_response(other, "Why?"))
    await store.record(answers, [None] * len(answers))
    failure = RunFailure(
        run=pressed, turn=7, profile="socratic-v1", kind="auth", message="no key", attempts=3
    )
    await store.record_failures([RecordedFailure(failure, 0)])

    for what in ("responses", "turns"):
        table = await open_table(what, store, chosen_runs(experiment))
        records = await records_of(table)

        names = [column.name for column in table.columns]
        assert names[-7:] == ["version", *ADDED]
        assert all(list(record) == names for record in records)
        assert [tuple(record[name] for name in ADDED) for record in records] == [
            ("opening", "kept", 1, 0, "no", "no"),
            ("ask", "lapsed", 1, 9, "no", "yes"),
            ("time", "lapsed", 1, 0, "yes", "no"),
            ("claim", "unknown", 0, 4, "no", "no"),
            ("ask", "lapsed", 0, 9, "no", "no"),
            ("flattery", "unknown", None, None, None, None),
            ("closing", "unknown", None, None, None, None),
            (None,) * 6,
        ]
        written = b"".join([piece async for piece in file_pieces(table, "csv")]).decode()
        assert ",opening,kept,1,0,no,no\r\n" in written


async def test_an_experiment_without_pressures_has_the_columns_of_before(store: Store) -> None:
    experiment = await filled(store)

    for what in ("responses", "turns"):
        table = await open_table(what, store, chosen_runs(experiment))
        assert table.columns[-1].name == "version"


async def records_of(table: Table) -> list[Record]:
    return [each async for records in table.read() for each in records]


async def test_metadata_stand_at_the_end_with_numbers_as_numbers(store: Store) -> None:
    noted = [{"grade": "7", "code": "07"}, {"grade": "8", "share": "0.5"}, {}]
    plain = an_experiment(models=1, scenarios=3, repeats=1)
    scenarios = [
        each.model_copy(update={"metadata": metadata})
        for each, metadata in zip(plain.manifest.scenarios, noted, strict=True)
    ]
    manifest = plain.manifest.model_copy(update={"scenarios": tuple(scenarios)})
    experiment = plain.model_copy(update={"manifest": manifest})
    await store.register(experiment)
    await store.record([a_response(run, ODD) for run in experiment.runs()], [None] * 3)
    names = ["metadata_grade", "metadata_code", "metadata_share"]
    for what in ("responses", "turns", "scenarios"):
        table = await open_table(what, store, chosen_runs(experiment))
        records = await records_of(table)
        assert [column.name for column in table.columns][-3:] == names
        assert [[each[name] for name in names] for each in records] == [
            [7, "07", None],
            [8, None, 0.5],
            [None, None, None],
        ]
    [one] = await records_of(
        await open_table("turns", store, chosen_runs(experiment, where=[("grade", "8")]))
    )
    assert one["scenario_id"] == scenarios[1].id
    with pytest.raises(InvalidInput, match="grade: the experiment has no grade '9'; there are"):
        chosen_runs(experiment, where=[("grade", "9")])
