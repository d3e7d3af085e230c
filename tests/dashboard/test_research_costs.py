"""The costs of models on the research page."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.manifest import TutorModel
from tests.contract.store.facts import a_score
from tests.dashboard.conftest import Visit
from tests.dashboard.seeding import experiment, seed, tutors

if TYPE_CHECKING:
    from playwright.async_api import Page
from tests.dashboard.research_page import MODEL_ROWS, SCREENS, models_at, rows_of, width_of

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]

RANKS = "rows => rows.map(row => [row.dataset.model, row.querySelector('.rank').textContent])"


async def unpriced(store: SqlStore, *models: TutorModel) -> None:
    """Store an experiment of which no cost is known."""
    planned = experiment(models)
    await store.register(planned)
    scores = [a_score(run).model_copy(update={"cost_nanodollars": None}) for run in planned.runs()]
    await store.fold(scores, ())


async def costs_of(page: Page) -> dict[str, str]:
    """The texts of the cost column, by model in the order of the page."""
    await page.locator(MODEL_ROWS).first.wait_for()
    pairs = await page.locator(MODEL_ROWS).evaluate_all(
        """rows => rows.map(row => [
            row.dataset.model, row.querySelector("td.cost span").textContent,
        ])"""
    )
    return dict(pairs)


@SCREENS
async def test_a_known_cost_has_a_column_with_a_dash_for_what_is_unknown(
    store: SqlStore, visit: Visit, viewport: Any
):
    await seed(store, experiment(tutors(4)), failing=0)
    await seed(store, experiment((TutorModel(id="partly/failed"),)), failing=0.4)
    await unpriced(store, TutorModel(id="local/unpriced"))
    page = await visit("/", viewport=viewport)

    costs = await costs_of(page)

    assert costs["local/unpriced"] == "–"
    assert costs["reference/socratic"] == "$0.00"
    assert costs["partly/failed"].startswith("≥ $0.00")
    assert costs["provider-1/tutor-1"].startswith("$0.00")
    assert float(costs["provider-1/tutor-1"].lstrip("$")) > 0
    assert await page.locator("td.cost").first.is_visible()
    assert await page.locator("#about-costs").is_visible()
    assert await width_of(page) <= viewport["width"]


async def test_without_any_known_cost_there_is_neither_a_column_nor_an_order_by_it(
    store: SqlStore, visit: Visit
):
    await unpriced(store, TutorModel(id="local/unpriced"))
    page = await visit("/?order=cheapest")
    await rows_of(page)

    for where in ("td.cost", "#cost-header", "#order-choice", "#about-costs"):
        assert not await page.locator(where).first.is_visible()
    assert await page.get_by_role("columnheader").count() == 7


async def test_models_are_ordered_by_cost_on_request_and_keep_their_ranks(
    store: SqlStore, address: str, visit: Visit
):
    await seed(store, experiment(tutors(8)))
    await unpriced(store, TutorModel(id="local/unpriced"))
    page = await visit("/")
    await rows_of(page)
    ranks = dict(await page.locator(MODEL_ROWS).evaluate_all(RANKS))
    models = await models_at(address)
    known = [model for model in models if model["total_cost_usd"] is not None]

    expected: list[str] = []
    for order, sign in (("cheapest", 1), ("most-expensive", -1)):
        await page.locator("#order").select_option(order)
        by_cost = sorted(known, key=itemgetter("total_cost_usd"), reverse=sign < 0)
        expected = [model["model_id"] for model in by_cost] + ["local/unpriced"]
        shown = await page.locator(MODEL_ROWS).evaluate_all(RANKS)
        assert shown == [[model, ranks[model]] for model in expected]
        assert f"order={order}" in page.url
    again = await visit(page.url.removeprefix(address))
    assert list(await costs_of(again)) == expected


async def test_a_row_opens_into_its_tokens_and_costs(store: SqlStore, visit: Visit):
    await seed(store, experiment(tutors(1)), failing=0)
    page = await visit("/?open=reference/socratic")

    facts = page.locator("tr.detail:not([hidden]) .facts")

    assert "5,400 read" in await facts.inner_text()
    assert "$0.00, $0.00 each, simulated" in await facts.inner_text()
