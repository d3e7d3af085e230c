"""Costs over HTTP: /api/cost-analysis, and the spending in /api/experiments."""

from __future__ import annotations

import html
import random
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest

from socratic_api.bootstrap import SPENDING_SECONDS, build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, Parameters, TutorModel
from socratic_bench.domain.money import Price, most_a_call_costs
from socratic_bench.domain.response import Usage
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import FailureKind, ModelCallFailed
from socratic_bench.planning.estimate import look_into
from socratic_bench.ports.models import Question, Reply
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_bench.results.costs import usd
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.experiment_status import experiment_status
from socratic_bench.results.pages import report_page
from socratic_bench.scoring.exchange import Status
from socratic_cli.embedded import Benchmark
from tests.contract.store.facts import a_response
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors
from tests.unit.services.runner.scripted import ScriptedClient
from tests.waiting import waiting_for

ADDRESS = "/api/cost-analysis"
PRICE = Price(input_per_million=Decimal(3), output_per_million=Decimal(15))
HOSTED = TutorModel(id="hosted/model", price=PRICE)


class SetClock:
    def __init__(self) -> None:
        self.time = MONDAY

    def now(self) -> datetime:
        return self.time


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
async def client(
    store: SqlStore, settings: ApiSettings, clock: SetClock
) -> AsyncIterator[httpx.AsyncClient]:
    app = build_app(store, settings, clock=clock)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://api"
    ) as client:
        yield client


def with_budget(planned: Experiment, budget: Decimal | None) -> Experiment:
    manifest = planned.manifest.model_copy(update={"budget": budget})
    return planned.model_copy(update={"manifest": manifest})


async def test_costs_come_most_expensive_first_and_add_up_to_those_of_the_leaderboard(
    client: httpx.AsyncClient, store: SqlStore
):
    await seed(store, experiment(tutors(6)))

    answer = (await client.get(ADDRESS)).raise_for_status().json()
    board = (await client.get("/api/model-comparison")).json()["models"]

    costs = [model["total_cost_usd"] for model in answer["models"]]
    assert costs == sorted(costs, reverse=True)
    assert {model["model_id"]: model["total_cost_usd"] for model in board} == {
        model["model_id"]: model["total_cost_usd"] for model in answer["models"]
    }
    real = [each["total_cost_usd"] for each in answer["models"] if each["kind"] == "model"]
    assert answer["total_cost_usd"] == pytest.approx(sum(real), rel=1e-12)
    assert 0 < answer["cost_known"] < 1


async def test_one_experiment_is_chosen_by_its_id_and_all_of_them_by_all(
    client: httpx.AsyncClient, store: SqlStore
):
    old = experiment(tutors(3))
    new = experiment(tutors(3), occasion="next", created_at=MONDAY + timedelta(days=7))
    await seed(store, old)
    await seed(store, new, share=0.4)

    one = (await client.get(ADDRESS, params={"experiment": old.experiment_id})).json()
    every = (await client.get(ADDRESS, params={"experiment": "all"})).json()
    complete = (await client.get(ADDRESS)).json()

    tables = (one, every, complete)
    assert [{model["total_runs"] for model in each["models"]} for each in tables] == [
        {45},
        {63},
        {45},
    ]


@pytest.mark.parametrize(("wrong", "status"), [("exp-nowhere", 404), ("x" * 201, 422)])
async def test_an_experiment_that_cannot_be_chosen_is_a_problem_that_names_the_field(
    client: httpx.AsyncClient, wrong: str, status: int
):
    answer = await client.get(ADDRESS, params={"experiment": wrong})

    assert answer.status_code == status
    assert answer.json()["detail"].startswith("experiment: ")


async def test_experiments_say_what_they_spent_and_when_the_budget_was_exhausted(
    client: httpx.AsyncClient, store: SqlStore, clock: SetClock
):
    planned = with_budget(experiment((HOSTED,)), Decimal("0.5"))
    await store.register(planned)
    first, second, *_ = planned.runs()
    leases = [LeaseKey(run.experiment_id, run.run_id, 1, run.run_id) for run in (first, second)]
    await store.take_leases([Lease(lease, 3600.0, 250_000_000) for lease in leases], "runner")
    await store.record([a_response(first)], [leases[0].lease_id])

    [working] = (await client.get("/api/experiments?limit=1")).json()["experiments"]
    await store.exhaust(planned.experiment_id, 10**18)
    await store.leave("runner")
    [exhausted] = (await client.get("/api/experiments?limit=2")).json()["experiments"]

    assert (working["state"], exhausted["state"]) == ("running", "out_of_budget")
    assert working["spending"] == {
        "budget_usd": 0.5,
        "paid_usd": 0.000021,
        "possibly_paid_usd": 0.0,
        "in_flight_usd": 0.25,
        "reused_usd": 0.0,
        "exhausted": False,
        "told": "paid $0.000021, up to $0.2500 more for calls in flight",
    }
    assert exhausted["spending"]["possibly_paid_usd"] == 0.25
    assert exhausted["spending"]["in_flight_usd"] == 0.0


async def test_spending_is_never_shown_as_it_was_longer_ago_than_promised(
    client: httpx.AsyncClient, store: SqlStore, clock: SetClock, monkeypatch: pytest.MonkeyPatch
):
    await store.register(with_budget(experiment((HOSTED,)), Decimal("0.5")))
    calls: Counter[str] = Counter()
    for name in ("revision", "spending_of"):
        ask = getattr(store, name)

        async def counted(*arguments, name=name, ask=ask):
            calls[name] += 1
            return await ask(*arguments)

        monkeypatch.setattr(store, name, counted)

    async def look_until_refreshed(times: int) -> None:
        async with waiting_for("answers that are made anew"):
            while calls["revision"] < times:
                await client.get("/api/experiments")

    await look_until_refreshed(3)
    assert calls["spending_of"] == 1
    clock.time += timedelta(seconds=SPENDING_SECONDS)
    await look_until_refreshed(4)
    assert calls["spending_of"] == 2


def scripted(repeats: int) -> Experiment:
    manifest = Manifest(
        models=(TutorModel(id="scripted/tutor", price=PRICE),),
        scenarios=(Scenario(id="one", dimension="ambiguous", prompt="Help?"),),
        system_prompt="You are a tutor.",
        parameters=Parameters(max_tokens=600),
        repeats=repeats,
    )
    return Experiment(manifest=manifest, created_at=SystemClock().now())


@pytest.mark.parametrize("seed", range(3))
async def test_the_parts_of_the_cost_agree_everywhere_after_failures_resumes_and_reuse(
    client: httpx.AsyncClient, store: SqlStore, seed: int
):
    chance = random.Random(seed)
    paid, possibly, reused = Counter[str](), Counter[str](), Counter[str]()

    def answer(question: Question, _call: int) -> Reply | ModelCallFailed:
        of = question.run.experiment_id
        kind = chance.choice([None, None, FailureKind.CUT_STREAM, FailureKind.AUTH])
        if kind is None:
            usage = Usage(input_tokens=100, visible_output_tokens=100)
            paid[of] += PRICE.cost_nanodollars(100, 100)
            return Reply(text="What?", status=Status.OK, usage=usage, latency_ms=1)
        if kind is FailureKind.CUT_STREAM:
            possibly[of] += most_a_call_costs(PRICE, question.texts, 600)
        return ModelCallFailed(kind, "no answer", retryable=False)

    ids, tutor = list[str](), ScriptedClient(answer)
    for repeats, retry_failed in ((4, False), (4, True), (6, False), (6, True)):
        planned = scripted(repeats)
        prospect = await look_into(
            store, planned, fresh=False, adopt=True, retry_failed=retry_failed
        )
        reused[planned.experiment_id] += prospect.outlook.reused_nanodollars
        async with waiting_for("the benchmark"):
            await Benchmark(
                planned, store, lambda _: tutor, limits=store, retry_failed=retry_failed
            ).execute()
        ids.append(planned.experiment_id)

    for of in dict.fromkeys(ids):
        told = await _spendings(client, store, of)
        assert all(each == told[0] for each in told), of
        figures = told[0]
        parts = (figures["paid_usd"], figures["possibly_paid_usd"], figures["reused_usd"])
        assert parts == (usd(paid[of]), usd(possibly[of]), usd(reused[of]))
        assert f"Cost: {figures['told']}." in html.unescape(await report_page(store, of))
        board = (await client.get("/api/model-comparison", params={"experiment": of})).json()
        column = sum(model["total_cost_usd"] or 0 for model in board["models"])
        assert column == pytest.approx(parts[0] + parts[2])
    assert reused[ids[-1]], "the second experiment took answers over"


async def _spendings(client: httpx.AsyncClient, store: SqlStore, of: str) -> list[dict[str, Any]]:
    """Return the cost of an experiment, as every page and command has it."""
    stored = await find_experiment(store, of)
    status = await experiment_status(store, stored, SystemClock().now())
    addresses = (f"/api/experiments/{of}", f"/api/model-comparison?experiment={of}")
    answers = [await client.get(each) for each in (*addresses, f"{ADDRESS}?experiment={of}")]
    return [
        status.spending.model_dump(),
        *(answer.raise_for_status().json()["spending"] for answer in answers),
    ]
