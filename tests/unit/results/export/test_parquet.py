"""Parquet files of ours, read back by DuckDB, whose reader shares no code with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from socratic_bench.results.export.parquet import ParquetFile
from socratic_bench.results.export.records import ExportColumn, Kind

COLUMNS = (
    ExportColumn("text", Kind.TEXT),
    ExportColumn("tokens", Kind.INTEGER),
    ExportColumn("overall", Kind.NUMBER),
    ExportColumn("recorded_at", Kind.MOMENT),
)
DATABASE = duckdb.connect(config={"autoinstall_known_extensions": "false", "threads": "1"})
MOMENTS = st.datetimes(
    datetime(1970, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
    datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
)
ROWS = st.lists(
    st.tuples(
        st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(allow_nan=False),
        st.none() | MOMENTS,
    ),
    max_size=40,
)


def record(row: Sequence[Any]) -> Mapping[str, Any]:
    values = [each.isoformat() if isinstance(each, datetime) else each for each in row]
    return dict(zip([column.name for column in COLUMNS], values, strict=True))


def whole(rows: Iterable[Sequence[Any]]) -> bytes:
    file = ParquetFile(COLUMNS)
    return file.begin() + file.add([record(row) for row in rows]) + file.end()


def read(content: bytes, folder: Path) -> list[tuple[Any, ...]]:
    path = folder / "table.parquet"
    path.write_bytes(content)
    # As microseconds: for times with zones DuckDB would fetch an extension.
    chosen = "* REPLACE (epoch_us(recorded_at) AS recorded_at)"
    return DATABASE.execute(f"SELECT {chosen} FROM '{path}'").fetchall()


def expected(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return [
        tuple(
            (each - epoch) // timedelta(microseconds=1) if isinstance(each, datetime) else each
            for each in row
        )
        for row in rows
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_an_independent_reader_finds_the_same_values(tmp_path: Path, rows: list[Any]) -> None:
    assert read(whole(rows), tmp_path) == expected(rows)


def test_numbers_and_times_have_their_types(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_bytes(whole([]))
    described = DATABASE.execute(f"DESCRIBE FROM '{tmp_path / 'table.parquet'}'").fetchall()
    assert [(name, kind, nullable) for name, kind, nullable, *_ in described] == [
        ("text", "VARCHAR", "YES"),
        ("tokens", "BIGINT", "YES"),
        ("overall", "DOUBLE", "YES"),
        ("recorded_at", "TIMESTAMP WITH TIME ZONE", "YES"),
    ]


def test_a_large_table_has_several_row_groups_and_needs_the_memory_of_one(tmp_path: Path) -> None:
    row = ("What might you consider? " * 40, 250, 0.5, None)
    rows, batch = 20_000, 50
    path = tmp_path / "table.parquet"
    file = ParquetFile(COLUMNS, group_bytes=200_000)
    before, most_of_arrow = pa.total_allocated_bytes(), 0
    tracemalloc.start()
    with path.open("wb") as out:
        out.write(file.begin())
        for number in range(0, rows, batch):
            out.write(
                file.add(
                    [
                        record((f"{each}{row[0]}", *row[1:]))
                        for each in range(number, number + batch)
                    ]
                )
            )
            most_of_arrow = max(most_of_arrow, pa.total_allocated_bytes() - before)
        out.write(file.end())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak + most_of_arrow < 3_000_000  # the whole table has 20 MB of text
    groups, counted = DATABASE.execute(
        f"SELECT count(DISTINCT row_group_id), sum(num_values) FROM parquet_metadata('{path}') "
        "WHERE path_in_schema = 'text'"
    ).fetchall()[0]
    assert (groups, counted) == (100, rows)
    found = DATABASE.execute(f"SELECT count(DISTINCT text), avg(overall) FROM '{path}'").fetchall()
    assert found == [(rows, 0.5)]
