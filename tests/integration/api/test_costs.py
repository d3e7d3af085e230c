"""Costs over HTTP: /api/cost-analysis, and the spending in /api/experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from decimal import Decimal

import httpx
import pytest

from socratic_api.bootstrap import SPENDING_SECONDS, build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from tests.contract.store.facts import a_response
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors
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
        "spent_usd": 0.000021,
        "in_flight_usd": 0.25,
        "exhausted": False,
    }
    assert exhausted["spending"]["spent_usd"] == 0.250021
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
