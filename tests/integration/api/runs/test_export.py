"""`/api/export` and `/api/compare`: the commands' answers over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from socratic_api.bootstrap import build_app
from socratic_api.control.capabilities import Capabilities
from socratic_api.routes.runs.export import MOST_CONTINUED
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.adapters.system.clock import SystemClock
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.reporting.difference.model_difference import model_difference
from socratic_bench.reporting.export.export_files import ExportFiles
from socratic_bench.reporting.export.formats import FORMATS
from socratic_bench.reporting.export.tables import TABLES, open_table
from socratic_bench.reporting.export.writing import file_pieces
from socratic_bench.reporting.transcripts.chosen_runs import chosen_runs
from tests.contract.files.memory_files import MemoryFiles
from tests.contract.store.facts import a_response
from tests.dashboard.seeding import experiment, seed, tutors


async def test_an_export_has_the_bytes_of_the_command(client: httpx.AsyncClient, store: SqlStore):
    planned = experiment(tutors(2))
    await store.register(planned)
    runs = list(planned.runs())[:60]  # more than one query of them
    await store.record([a_response(run, "=What, then?") for run in runs], [None] * len(runs))

    for what in TABLES:
        for output, of_format in FORMATS.items():
            answer = await client.get(f"/api/export?table={what}&format={output}")

            table = await open_table(what, store, chosen_runs(planned))
            assert answer.content == b"".join([each async for each in file_pieces(table, output)])
            assert answer.headers["content-type"] == of_format.media_type
            of_table = "" if what == "responses" else f"-{what}"
            name = f'"{planned.experiment_id}{of_table}.{output}"'
            assert answer.headers["content-disposition"].endswith(name)
    lines = await client.get(f"/api/export?experiment={planned.experiment_id}")
    assert len(lines.text.splitlines()) == 60


@pytest.fixture
async def planned(store: SqlStore) -> Experiment:
    """An experiment with more answers than one read of them."""
    planned = experiment(tutors(4))
    await store.register(planned)
    runs = list(planned.runs())[:60]
    await store.record([a_response(run, "What, then?") for run in runs], [None] * len(runs))
    return planned


@asynccontextmanager
async def linking(
    store: SqlStore, settings: ApiSettings, exports: ExportFiles
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an API that gives whole answers, as a function does."""
    app = build_app(store, settings, capabilities=Capabilities(may_stream=False, exports=exports))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def test_without_streams_an_export_leads_to_a_file_with_the_same_bytes(
    client: httpx.AsyncClient, store: SqlStore, settings: ApiSettings, planned: Experiment
):
    files = MemoryFiles()
    async with linking(store, settings, ExportFiles(files, SystemClock())) as function:
        for what in TABLES:
            for output in FORMATS:
                path = f"/api/export?table={what}&format={output}"
                streamed = await client.get(path)
                answer = await function.get(path)
                assert answer.status_code == 303
                assert answer.headers["cache-control"] == "no-store"
                assert files.linked(answer.headers["location"]) == streamed.content
                saved_as = files.saved_as[[*files.saved_as][-1]]
                assert streamed.headers["content-disposition"].endswith(f'"{saved_as.name}"')
                assert saved_as.media_type == streamed.headers["content-type"]
                assert (await function.get(path)).headers["location"] == answer.headers["location"]
        whole = await function.get("/api/export")
        for filters in ("dimension=ethical", "model=reference/lecturer&model=reference/socratic"):
            streamed = await client.get(f"/api/export?{filters}")
            answer = await function.get(f"/api/export?{filters}")
            assert files.linked(answer.headers["location"]) == streamed.content
            assert answer.headers["location"] != whole.headers["location"]
        assert (await function.get("/api/export?table=runs")).status_code == 422


async def test_a_long_export_leads_to_itself_until_its_file_is_complete(
    store: SqlStore, settings: ApiSettings, planned: Experiment
):
    files = MemoryFiles()
    async with linking(store, settings, ExportFiles(files, SystemClock(), seconds=0)) as function:
        models = "&".join(f"model={each.id}" for each in planned.manifest.models)
        first = await function.get(f"/api/export?{models}&profile=socratic-v1&format=csv")
        assert first.status_code == 303
        location = first.headers["location"]
        assert f"experiment={planned.experiment_id}" in location
        assert "profile=socratic-v1" in location
        assert location.count("model=") == len(planned.manifest.models)
        assert location.endswith("continued=1")

        second = await function.get(httpx.URL(first.url).join(location))
        assert "continued=2" in second.headers["location"]

    async with linking(store, settings, ExportFiles(files, SystemClock())) as function:
        last = await function.get(httpx.URL(first.url).join(second.headers["location"]))
    assert len(files.linked(last.headers["location"]).splitlines()) == 61


async def test_an_export_that_takes_too_long_for_redirects_asks_to_be_asked_again(
    store: SqlStore, settings: ApiSettings, planned: Experiment
):
    path = f"/api/export?continued={MOST_CONTINUED}"
    async with linking(
        store, settings, ExportFiles(MemoryFiles(), SystemClock(), seconds=0)
    ) as function:
        answer = await function.get(path)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        planned_runs = planned.manifest.planned_runs
        assert f"50 of {planned_runs:,} runs are written" in answer.json()["detail"]
        assert f"socratic-bench export {planned.experiment_id}" in answer.json()["detail"]
        again = await function.get("/api/export?continued=0")
        assert again.status_code == 303
        assert (await function.get(f"{path}0")).status_code == 422


async def test_an_export_of_an_unknown_table_or_format_is_a_problem(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(2)))
    for query in ("table=runs", "format=xlsx", "table=", "profile=absent"):
        assert (await client.get(f"/api/export?{query}")).status_code == 422


async def test_two_models_are_compared_as_the_command_does(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(4)))
    first, second = (model.id for model in tutors(4)[2:])

    answer = await client.get("/api/compare", params={"a": first, "b": second})

    expected = await model_difference(store, first, second)
    assert answer.json() == expected.model_dump(mode="json")


async def test_a_comparison_that_makes_no_sense_is_a_problem(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(2)))
    sides = "a=reference/socratic&b=reference/lecturer"
    assert (await client.get(f"/api/compare?{sides}&margin=0.1")).status_code == 200
    wrong_margins = [f"{sides}&margin={margin}" for margin in ("0", "1", "nan", "-1", "small")]
    for query in (
        "",
        "a=reference/socratic",
        "a=reference/socratic&b=nobody",
        "a=x&b=%00",
        *wrong_margins,
    ):
        answer = await client.get(f"/api/compare?{query}")
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
