"""Exports as files: one request writes at a time, and another one goes on where it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import StoreUnavailable
from socratic_bench.ports.files import UploadGone
from socratic_bench.ports.stores.store import Store
from socratic_bench.reporting.export.checkpoint import CONTINUED_SECONDS, HELD_SECONDS
from socratic_bench.reporting.export.columns import Record
from socratic_bench.reporting.export.export_files import (
    EXPORTS,
    RUNNING_SECONDS,
    SAME_SECONDS,
    ExportFiles,
    ExportProgress,
    ExportRequest,
)
from socratic_bench.reporting.export.formats import FORMATS
from socratic_bench.reporting.export.tables import Table, open_table
from socratic_bench.reporting.export.writing import file_pieces
from socratic_bench.reporting.transcripts.chosen_runs import chosen_runs
from tests.contract.files.memory_files import MemoryFiles
from tests.contract.store.facts import MONDAY, a_response, an_experiment

SMALL_PART = 10_000


class Clock:
    """Tells the time that a test sets."""

    def __init__(self) -> None:
        self.time = MONDAY

    def now(self):
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    """240 answers, which are five reads of the table."""
    experiment = an_experiment(models=2, scenarios=6, repeats=20)
    await store.register(experiment)
    runs = list(experiment.runs())
    await store.record([a_response(run, f"Why, {run.run_id}?") for run in runs], [None] * len(runs))
    return experiment.model_copy(update={"completed_at": MONDAY})


@pytest.fixture
async def table(store: Store, experiment: Experiment) -> Table:
    return await open_table("responses", store, chosen_runs(experiment))


def request_of(experiment: Experiment, output: str = "csv") -> ExportRequest:
    chosen = chosen_runs(experiment)
    return ExportRequest(chosen, "responses", None, output, f"export.{output}")


async def whole(table: Table, output: str) -> bytes:
    return b"".join([piece async for piece in file_pieces(table, output)])


def counting(table: Table, reads: list[int]) -> Table:
    """The table, which notes the places that are read."""

    async def read(place: int) -> list[Record]:
        reads.append(place)
        return await table.read(place)

    return Table(table.columns, table.places, table.step, read)


def meeting(table: Table, met: Callable[[int], Awaitable[None]]) -> Table:
    """The table, which lets something happen before each read."""

    async def read(place: int) -> list[Record]:
        await met(place)
        return await table.read(place)

    return Table(table.columns, table.places, table.step, read)


async def until_complete(
    exports: ExportFiles, request: ExportRequest, table: Table
) -> list[ExportProgress]:
    """What each request answers, up to the one with the link."""
    answers = [await exports.write(request, table, "1")]
    while answers[-1].link is None:
        assert len(answers) < 20
        answers.append(await exports.write(request, table, "1"))
    return answers


async def test_a_small_export_is_written_at_once_and_taken_again(
    files: MemoryFiles, clock: Clock, experiment: Experiment, table: Table
) -> None:
    exports, reads = ExportFiles(files, clock), list[int]()
    for output in FORMATS:
        request = request_of(experiment, output)
        answer = await exports.write(request, counting(table, reads), "1")
        assert answer.link is not None
        assert files.linked(answer.link) == await whole(table, output)
        [(key, saved_as)] = [
            each for each in files.saved_as.items() if each[1].name.endswith(output)
        ]
        assert key.startswith(f"{EXPORTS}{experiment.experiment_id}/")
        assert saved_as == (f"export.{output}", FORMATS[output].media_type)
        before = len(reads)
        clock.pass_by(SAME_SECONDS - 1)
        assert await exports.write(request, counting(table, reads), "1") == answer
        assert len(reads) == before


async def test_another_revision_and_an_old_file_are_written_anew(
    files: MemoryFiles, clock: Clock, experiment: Experiment, table: Table
) -> None:
    exports, request = ExportFiles(files, clock), request_of(experiment)
    links = [(await exports.write(request, table, "1")).link]
    clock.pass_by(1)
    links.append((await exports.write(request, table, "2")).link)
    clock.pass_by(SAME_SECONDS)
    links.append((await exports.write(request, table, "2")).link)
    assert len(set(links)) == 3

    running = request_of(experiment.model_copy(update={"completed_at": None}))
    clock.pass_by(RUNNING_SECONDS - 1)
    assert (await exports.write(running, table, "2")).link == links[-1]
    clock.pass_by(1)
    assert (await exports.write(running, table, "2")).link not in links


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.parametrize("part_bytes", [SMALL_PART, 10 * 1024 * 1024], ids=["parts", "whole"])
async def test_each_request_goes_on_where_the_one_before_ended(
    files: MemoryFiles,
    clock: Clock,
    experiment: Experiment,
    table: Table,
    tmp_path: Path,
    output: str,
    part_bytes: int,
) -> None:
    reads: list[int] = []
    exports = ExportFiles(files, clock, seconds=0, part_bytes=part_bytes)

    answers = await until_complete(exports, request_of(experiment, output), counting(table, reads))

    assert [each.places for each in answers] == [50, 100, 150, 200, 240]
    assert reads == [0, 50, 100, 150, 200]
    assert files.uploads == {}
    content = files.linked(str(answers[-1].link))
    if output == "parquet":  # a pause ends a row group
        path = tmp_path / "export.parquet"
        path.write_bytes(content)
        counted = duckdb.sql(f"SELECT count(*), count(DISTINCT run_id) FROM '{path}'").fetchall()
        assert counted == [(240, 240)]
    else:
        assert content == await whole(table, output)


async def test_an_export_in_progress_is_completed_although_the_store_changes(
    files: MemoryFiles, clock: Clock, experiment: Experiment, table: Table
) -> None:
    exports = ExportFiles(files, clock, seconds=0)
    request = request_of(experiment)
    places = [(await exports.write(request, table, str(number))).places for number in range(5)]
    assert places == [50, 100, 150, 200, 240]

    first = await exports.write(request, table, "5")
    assert first.places == 50
    clock.pass_by(CONTINUED_SECONDS)
    assert (await exports.write(request, table, "5")).places == 50


async def test_one_of_many_requests_writes_and_all_get_its_file(
    files: MemoryFiles, clock: Clock, experiment: Experiment, table: Table
) -> None:
    reads: list[int] = []
    exports, request = ExportFiles(files, clock), request_of(experiment)
    slow = meeting(counting(table, reads), lambda _: asyncio.sleep(0.01))
    answers = await asyncio.gather(*(exports.write(request, slow, str(n)) for n in range(4)))
    assert len({each.link for each in answers}) == 1
    assert reads == [0, 50, 100, 150, 200]

    impatient = ExportFiles(files, clock, seconds=0)
    running = request_of(experiment, "jsonl")

    async def ask(place: int) -> None:
        if place:
            assert await impatient.write(running, table, "1") == ExportProgress(None, 0, 240)

    assert (await exports.write(running, meeting(table, ask), "1")).link is not None


async def test_a_request_that_died_is_followed_by_one_that_goes_on_from_its_beginning(
    files: MemoryFiles, clock: Clock, experiment: Experiment, table: Table
) -> None:
    async def die(place: int) -> None:
        if place == 150:
            raise StoreUnavailable("the store is away")

    paused = ExportFiles(files, clock, seconds=0, part_bytes=SMALL_PART)
    working = ExportFiles(files, clock, part_bytes=SMALL_PART)
    request = request_of(experiment)
    assert (await paused.write(request, table, "1")).places == 50
    with pytest.raises(StoreUnavailable):
        await working.write(request, meeting(table, die), "1")
    assert await paused.write(request, table, "1") == ExportProgress(None, 50, 240)

    clock.pass_by(HELD_SECONDS)
    reads: list[int] = []
    answer = await working.write(request, counting(table, reads), "1")

    assert reads == [50, 100, 150, 200]
    assert files.linked(str(answer.link)) == await whole(table, "csv")


async def test_a_late_request_does_not_undo_the_work_of_the_one_that_followed_it(
    files: MemoryFiles, clock: Clock, experiment: Experiment, table: Table
) -> None:
    exports = ExportFiles(files, clock, part_bytes=SMALL_PART)
    request, links = request_of(experiment), list[str | None]()

    async def overtake(place: int) -> None:
        if place == 200:
            clock.pass_by(HELD_SECONDS)
            links.append((await exports.write(request, table, "1")).link)

    with pytest.raises(UploadGone):
        await paused_first(files, clock, request, table, overtake)
    assert (await exports.write(request, table, "1")).link == links[0]
    assert files.linked(str(links[0])) == await whole(table, "csv")


async def paused_first(
    files: MemoryFiles,
    clock: Clock,
    request: ExportRequest,
    table: Table,
    met: Callable[[int], Awaitable[None]],
) -> None:
    """Two requests: one that begins an upload, and one that goes on with it and is overtaken."""
    await ExportFiles(files, clock, seconds=0, part_bytes=SMALL_PART).write(request, table, "1")
    exports = ExportFiles(files, clock, part_bytes=SMALL_PART)
    await exports.write(request, meeting(table, met), "1")


async def test_a_file_whose_upload_was_removed_is_begun_anew(
    files: MemoryFiles, clock: Clock, experiment: Experiment, table: Table
) -> None:
    request = request_of(experiment)
    await ExportFiles(files, clock, seconds=0, part_bytes=SMALL_PART).write(request, table, "1")
    files.uploads.clear()
    exports = ExportFiles(files, clock, part_bytes=SMALL_PART)
    with pytest.raises(UploadGone):
        await exports.write(request, table, "1")

    answer = await exports.write(request, table, "1")

    assert files.linked(str(answer.link)) == await whole(table, "csv")
