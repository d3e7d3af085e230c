"""`/api/export` and `/api/compare`: the commands' answers over HTTP."""

from __future__ import annotations

import sys

import httpx
import pytest

from socratic_api.bootstrap import build_app
from socratic_api.http.whole_answers import WholeAnswers
from socratic_api.routes import export
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.results.compare.model_difference import model_difference
from socratic_bench.results.export.formats import FORMATS, file_pieces
from socratic_bench.results.export.tables import TABLES, open_table
from socratic_bench.results.transcripts import chosen_runs
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


def asking(store: SqlStore, settings: ApiSettings, *, most_bytes: int) -> httpx.AsyncClient:
    """A client of an API that gives whole answers, as a function does."""
    app = WholeAnswers(build_app(store, settings), lambda: 60, most_bytes)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


async def test_a_whole_export_has_the_bytes_of_a_stream_and_counts_compressed(
    client: httpx.AsyncClient, store: SqlStore, settings: ApiSettings, planned: Experiment
):
    streamed = await client.get("/api/export?format=csv")
    async with asking(store, settings, most_bytes=len(streamed.content) // 2) as function:
        answer = await function.get("/api/export?format=csv")
        assert answer.content == streamed.content
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["content-disposition"] == streamed.headers["content-disposition"]

        plain = {"accept-encoding": "identity"}
        assert (await function.get("/api/export?format=csv", headers=plain)).status_code == 422


async def test_an_export_that_is_no_whole_answer_names_the_command_that_writes_it(
    store: SqlStore, settings: ApiSettings, planned: Experiment
):
    query = "table=turns&format=csv&model=reference/socratic&dimension=ethical&page=2&profile="
    named = (
        f"`socratic-bench export {planned.experiment_id} --table turns --format csv "
        "--model reference/socratic --dimension ethical "
        f"--out {planned.experiment_id}-turns-filtered.csv`"
    )
    async with asking(store, settings, most_bytes=100) as function:
        answer = await function.get(f"/api/export?{query}")
        assert answer.status_code == 422
        assert "more than 100 bytes" in answer.json()["detail"]
        assert named in answer.json()["detail"]
        quoted = await function.get("/api/export?dimension=ethical&profile=socratic-v1")
        assert "--dimension ethical --profile socratic-v1 --out" in quoted.json()["detail"]


async def test_an_export_ends_once_it_is_too_large_for_a_whole_answer(
    store: SqlStore, settings: ApiSettings, planned: Experiment, monkeypatch: pytest.MonkeyPatch
):
    asked: list[int] = []

    async def counting(ids):
        asked.append(len(ids))
        return await responses(ids)

    responses = store.responses
    monkeypatch.setattr(store, "responses", counting)
    async with asking(store, settings, most_bytes=100) as function:
        assert (await function.get("/api/export?table=turns")).status_code == 422
    assert 50 * len(asked) < planned.manifest.planned_runs


async def test_without_pyarrow_an_export_says_what_brings_parquet(
    client: httpx.AsyncClient, planned: Experiment, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = await client.get("/api/export?format=parquet")
    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "the format parquet needs pyarrow, which is not installed; run: "
        "pip install 'socratic-ai-bench[parquet]'; then the command `socratic-bench export "
        f"{planned.experiment_id} --format parquet --out {planned.experiment_id}.parquet` "
        "writes it, too"
    )
    assert (await client.get("/api/export?format=csv")).status_code == 200


async def test_an_address_has_few_exports_at_once(
    client: httpx.AsyncClient, planned: Experiment, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(export, "MOST_OF_AN_ADDRESS", 1)
    for _ in range(2):
        assert (await client.get("/api/export?table=absent")).status_code == 422
        assert (await client.get("/api/export")).status_code == 200, "earlier ones have ended"
    monkeypatch.setattr(export, "MOST_OF_AN_ADDRESS", 0)
    refused = await client.get("/api/export")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")


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
