"""`/api/export` and `/api/compare`: the commands' answers over HTTP."""

from __future__ import annotations

import httpx

from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.reporting.difference.model_difference import model_difference
from socratic_bench.reporting.export.formats import FORMATS
from socratic_bench.reporting.export.tables import TABLES, open_table
from socratic_bench.reporting.export.writing import file_pieces
from socratic_bench.reporting.transcripts.chosen_runs import chosen_runs
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
