"""`/api/export` and `/api/compare`: the commands' answers over HTTP."""

from __future__ import annotations

import httpx

from socratic_bench.adapters.sql.store import SqlStore
from socratic_bench.reporting.difference.model_difference import model_difference
from socratic_bench.reporting.transcripts.records import as_csv, as_json_lines, records
from tests.contract.store.facts import a_response
from tests.dashboard.seeding import experiment, seed, tutors


async def test_an_export_has_the_bytes_of_the_command(client: httpx.AsyncClient, store: SqlStore):
    planned = experiment(tutors(2))
    await store.register(planned)
    runs = list(planned.runs())[:60]  # more than one query of them
    await store.record([a_response(run, "=What, then?") for run in runs], [None] * len(runs))

    lines = await client.get("/api/export")
    table = await client.get(f"/api/export?experiment={planned.experiment_id}&format=csv")

    assert lines.text == "".join([each async for each in as_json_lines(records(store, planned))])
    assert table.text == "".join([each async for each in as_csv(records(store, planned))])
    assert len(lines.text.splitlines()) == 60
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert table.headers["content-disposition"].endswith(f'"{planned.experiment_id}.csv"')


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
