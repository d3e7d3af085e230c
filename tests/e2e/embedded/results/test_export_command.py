"""`socratic-bench export`: the responses of an experiment for other programs."""

import csv
import io
import json
from statistics import fmean

import duckdb
import pytest

from tests.e2e.command import Terminal

pytestmark = pytest.mark.xdist_group("a benchmark to export")

CONFIG = """
models:
  - reference/socratic
repeats: 1
occasion: spring
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    terminal = Terminal(tmp_path_factory.mktemp("export"))
    terminal.run("run", terminal.write("benchmark.yaml", CONFIG))
    return terminal


def test_json_lines_have_a_record_for_each_response(finished: Terminal) -> None:
    lines = finished.run("export", "spring").stdout.splitlines()
    table = json.loads(finished.run("leaderboard", "--format", "json").stdout)

    records = [json.loads(line) for line in lines]
    assert len(records) == 15
    assert {record["status"] for record in records} == {"ok"}
    assert all(record["text"] and record["student_message"] for record in records)
    mean = fmean(record["overall"] for record in records)
    assert mean == pytest.approx(table["models"][0]["overall_score"], abs=1e-6)


def test_csv_has_the_same_records_and_opens_in_a_spreadsheet(finished: Terminal) -> None:
    done = finished.run("export", "spring", "--format", "csv", "--out", "responses.csv")

    content = (finished.folder / "responses.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    expected = [json.loads(line) for line in finished.run("export", "spring").stdout.splitlines()]
    assert [row["run_id"] for row in rows] == [record["run_id"] for record in expected]
    assert [float(row["overall"]) for row in rows] == [record["overall"] for record in expected]
    assert list(rows[0]) == list(expected[0])
    assert "Wrote 15 records" in done.stderr
    assert not list(finished.folder.glob("*.part"))


def test_every_table_is_written_in_every_format_with_the_same_records(finished: Terminal) -> None:
    for table, expected in {"responses": 15, "scenarios": 15, "turns": 15}.items():
        written = {}
        for output in ("jsonl", "csv", "parquet"):
            name = f"{table}.{output}"
            asked = ("export", "spring", "--table", table, "--format", output, "--out", name)
            assert f"Wrote {expected} records" in finished.run(*asked).stderr
            written[output] = finished.folder / name
        records = [json.loads(line) for line in written["jsonl"].read_text().splitlines()]
        found = duckdb.read_parquet(str(written["parquet"]))
        assert found.columns == list(records[0])
        times = {name for name in found.columns if name in {"created_at", "recorded_at"}}
        chosen = ", ".join(f'"{name}"' for name in found.columns if name not in times)
        rows = found.project(chosen).fetchall()
        assert rows == [
            tuple(value for name, value in record.items() if name not in times)
            for record in records
        ]
        content = written["csv"].read_text(encoding="utf-8-sig")
        assert len(list(csv.DictReader(io.StringIO(content, newline="")))) == expected


def test_a_turn_has_what_the_call_took_and_no_score(finished: Terminal) -> None:
    lines = finished.run("export", "spring", "--table", "turns").stdout.splitlines()
    record = json.loads(lines[0])
    assert record["attempts"] == 1
    assert record["recorded_at"]
    assert record["profile"] is None
    assert "overall" not in record


def test_a_folder_that_is_not_there_is_named(finished: Terminal) -> None:
    done = finished.run("export", "spring", "--out", "none/responses.csv")

    assert done.returncode == 2
    assert "--out: none/responses.csv cannot be written" in done.stderr


def test_models_and_a_dimension_filter_the_records(finished: Terminal) -> None:
    only = ("--model", "reference/socratic", "--dimension", "ethical")
    records = [
        json.loads(line) for line in finished.run("export", "spring", *only).stdout.splitlines()
    ]

    assert len(records) == 5
    assert {record["dimension"] for record in records} == {"ethical"}
    wrong = finished.run("export", "spring", "--model", "reference/socrates")
    assert wrong.returncode == 2
    assert 'did you mean "reference/socratic"?' in wrong.stderr
