"""Rules for every answer: headers, problems, and its description in OpenAPI."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Manifest, weighted_name
from tests.dashboard.seeding import experiment, seed, tutors

PATHS = [
    "/",
    "/research.html",
    "/methodology.html",
    "/run.html",
    "/compare.html",
    "/heatmap.html",
    "/frontier.html",
    "/trends.html",
    "/fidelity.html",
    "/assets/styles.css",
    "/assets/research.js",
    "/api/model-comparison",
    "/api/cost-analysis",
    "/api/experiments",
    "/api/profiles",
    "/api/validity",
    "/api/capabilities",
    "/runs/run-nowhere/summary",
    "/api/detailed-results?experiment=exp-nowhere",
    "/api/scenario-scores?experiment=exp-nowhere",
    "/api/timeseries",
    "/api/export?experiment=exp-nowhere",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/nowhere",
    "/assets/nowhere.js",
    "/api/model-comparison?experiment=exp-nowhere",
    "/api/cost-analysis?experiment=exp-nowhere",
]


def assert_secure(answer: httpx.Response) -> None:
    asked, headers = answer.url, answer.headers
    policy = headers["content-security-policy"].split("; ")
    for directive in (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
    ):
        assert directive in policy, asked
    assert headers["x-content-type-options"] == "nosniff", asked
    assert headers["referrer-policy"] == "no-referrer", asked
    assert "server" not in headers, asked


async def test_every_answer_carries_the_security_headers(client: httpx.AsyncClient):
    for path in PATHS:
        answer = await client.get(path)
        assert_secure(answer)
        assert answer.status_code == (404 if "nowhere" in path else 200), path


async def test_what_is_not_there_is_a_problem_that_says_so(client: httpx.AsyncClient):
    for method, path, status in (
        ("GET", "/nowhere", 404),
        ("GET", "/assets/../settings.py", 404),
        ("GET", "/assets/..%2f..%2fsettings.py", 404),
        ("GET", "/assets/%00", 404),
        ("POST", "/api/model-comparison", 405),
        ("GET", "/api/score", 405),
        ("DELETE", "/", 405),
    ):
        answer = await client.request(method, path)
        problem = answer.json()
        told = (answer.status_code, problem["status"], answer.headers["content-type"])
        assert told == (status, status, "application/problem+json"), (method, path)
        assert set(problem) == {"type", "title", "status", "detail"}, (method, path)
        assert ("allow" in answer.headers) == (status == 405), (method, path)


async def test_what_nobody_foresaw_says_nothing_of_the_inside(
    client: httpx.AsyncClient, store: SqlStore, monkeypatch: pytest.MonkeyPatch
):
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret of the inside")

    monkeypatch.setattr(store, "outlines", broken)

    answer = await client.get("/api/model-comparison")

    assert answer.status_code == 500
    assert answer.json()["title"] == "Internal Server Error"
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert_secure(answer)


async def test_pages_have_no_inline_script_or_style_and_load_nothing_from_elsewhere(
    client: httpx.AsyncClient,
):
    for path in (path for path in PATHS if path.endswith(".html")):
        page = (await client.get(path)).text
        assert "<style" not in page
        assert " style=" not in page
        assert " onclick=" not in page
        assert page.count("<script") == page.count('<script type="module" src="assets/') > 0
        assert "https://" not in page
        assert "http://" not in page


async def test_profiles_are_described_with_examples_that_the_scorer_scored(
    client: httpx.AsyncClient,
):
    profile, *others = (await client.get("/api/profiles")).json()["profiles"]

    names = [profile["name"], *(each["name"] for each in others)]
    assert names == [
        *("socratic-v1", "socratic-v2", "socratic-v3", "fidelity-1", "fidelity-seed"),
        *("socratic-v1-same-ruler", "socratic-v1-llm"),
    ]
    assert profile["canonical"]
    assert not any(each["canonical"] for each in others)
    vectors = {vector["name"]: vector for vector in profile["vectors"]}
    assert list(vectors) == ["verbosity", "exploratory", "interrogative"]
    figures = {example["text"]: example["score"] for example in vectors["exploratory"]["examples"]}
    assert figures["What might you consider?"] == 1.0
    assert figures["You should always do this"] == 0.0
    assert [each["score"] for each in vectors["verbosity"]["examples"]][1:] == [0.5, 0.0]


async def test_the_weights_of_a_configuration_are_a_profile_at_every_address(
    client: httpx.AsyncClient, store: SqlStore
):
    weights = {"student": {"interrogative": 2.0}}
    name = weighted_name("socratic-v1", weights)
    plain = experiment(tutors(3))
    manifest = Manifest.model_validate(
        {**plain.manifest.model_dump(), "weightings": {name: weights}}
    )
    await seed(store, plain.model_copy(update={"manifest": manifest}))

    *_, last = (await client.get("/api/profiles")).raise_for_status().json()["profiles"]
    assert last["name"] == name
    assert last["weights"] == {
        "student": {"verbosity": 1.0, "exploratory": 1.0, "interrogative": 2.0}
    }
    first, second = (model.id for model in plain.manifest.models[1:])
    queries = {
        "/api/model-comparison": {},
        "/api/compare": {"a": first, "b": second},
        "/api/scenario-scores": {},
        "/api/interval": {"model": first},
    }
    # A `+` that is not written as %2B arrives as a space.
    for profile in (name, name.replace("+", " ")):
        for address, query in queries.items():
            answer = await client.get(address, params={**query, "profile": profile})
            assert answer.status_code == 200, answer.text
        answer = await client.get("/api/model-comparison", params={"profile": profile})
        assert answer.json()["profile"] == name
        assert answer.json()["profiles"] == ["socratic-v1", name]
        assert any("interrogative 2" in note for note in answer.json()["notes"])


async def test_the_openapi_document_is_valid_and_names_every_route(
    client: httpx.AsyncClient, store: SqlStore, settings: ApiSettings
):
    document = (await client.get("/openapi.json")).json()

    assert not list(OpenAPIV31SpecValidator(document).iter_errors())
    routes = {
        (route.path, method.lower())
        for route in build_app(store, settings).routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {
        (path, method) for path, methods in document["paths"].items() for method in methods
    }
    assert described == routes
    operations = [
        each["operationId"] for path in document["paths"].values() for each in path.values()
    ]
    assert len(operations) == len(set(operations))


ASKED: list[tuple[str, str, dict[str, Any] | None, str]] = [
    ("GET", "/api/model-comparison", None, "/api/model-comparison"),
    ("GET", "/api/model-comparison?experiment=exp-nowhere", None, "/api/model-comparison"),
    ("GET", "/api/cost-analysis", None, "/api/cost-analysis"),
    ("GET", "/api/cost-analysis?experiment=exp-nowhere", None, "/api/cost-analysis"),
    ("GET", "/api/experiments", None, "/api/experiments"),
    ("GET", "/api/experiments?limit=0", None, "/api/experiments"),
    ("POST", "/api/experiments", {"models": ["reference/socratic"]}, "/api/experiments"),
    ("POST", "/api/experiments", {"models": ["nobody/a"]}, "/api/experiments"),
    ("GET", "/api/experiments/2026-W10", None, "/api/experiments/{experiment_id}"),
    ("GET", "/api/experiments/nowhere", None, "/api/experiments/{experiment_id}"),
    (
        "GET",
        "/api/experiments/2026-W10/pending",
        None,
        "/api/experiments/{experiment_id}/pending",
    ),
    ("GET", "/api/experiments/no/events", None, "/api/experiments/{experiment_id}/events"),
    ("PATCH", "/api/experiments/exp-1", {}, "/api/experiments/{experiment_id}"),
    ("DELETE", "/api/experiments/exp-1", None, "/api/experiments/{experiment_id}"),
    ("GET", "/api/dead-letters", None, "/api/dead-letters"),
    ("POST", "/api/dead-letters/redrive", {}, "/api/dead-letters/redrive"),
    ("GET", "/api/profiles", None, "/api/profiles"),
    ("GET", "/api/validity", None, "/api/validity"),
    ("GET", "/api/capabilities", None, "/api/capabilities"),
    ("GET", "/api/compare?a=reference/socratic&b=reference/lecturer", None, "/api/compare"),
    ("GET", "/api/compare?a=reference/socratic", None, "/api/compare"),
    ("GET", "/api/export?format=pdf", None, "/api/export"),
    ("GET", "/api/timeseries", None, "/api/timeseries"),
    ("GET", "/api/timeseries?model=none", None, "/api/timeseries"),
    ("GET", "/api/timeseries?figure=none", None, "/api/timeseries"),
    ("GET", "/api/detailed-results", None, "/api/detailed-results"),
    ("GET", "/api/detailed-results?model=none", None, "/api/detailed-results"),
    ("GET", "/runs/run-nowhere/turns", None, "/runs/{run_id}/turns"),
    ("GET", "/healthz", None, "/healthz"),
    ("GET", "/readyz", None, "/readyz"),
    ("GET", "/assets/nowhere.js", None, "/assets/{name}"),
    ("POST", "/api/score", {"text": "What might it be?"}, "/api/score"),
    ("POST", "/api/score", {"text": " "}, "/api/score"),
    ("POST", "/api/score", {"items": [{"text": "a"}, {}]}, "/api/score"),
    ("POST", "/api/score", {"text": 3}, "/api/score"),
    ("POST", "/api/score", {"scores": {"open_ended": 75, "overall": 84.0}}, "/api/score"),
    ("GET", "/api/latest-rankings", None, "/api/latest-rankings"),
    ("GET", "/weekly", None, "/weekly"),
    ("GET", "/api/scenarios", None, "/api/scenarios"),
    ("GET", "/api/scenarios?experiment=nowhere", None, "/api/scenarios"),
    ("GET", "/weekly?week=2026-W01", None, "/weekly"),
]
"""A method, a path, a body, and the path that describes the answer."""


async def test_answers_are_as_the_openapi_document_describes_them(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(3), occasion="2026-W10"), share=0.9, failing=0.3)
    document = (await client.get("/openapi.json")).json()

    for method, path, body, described in ASKED:
        answer = await client.request(method, path, json=body)
        operation = document["paths"][described][method.lower()]
        content = operation["responses"][str(answer.status_code)]["content"]
        schema = content[answer.headers["content-type"]]["schema"]
        validator = Draft202012Validator({**schema, "components": document["components"]})
        wrong = [error.message for error in validator.iter_errors(answer.json())]
        assert not wrong, (method, path, body)
