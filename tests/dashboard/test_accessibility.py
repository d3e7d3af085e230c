"""Axe finds nothing on the pages of experiments."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from tests.dashboard.accessibility import LOOKS, Look, assert_accessible
from tests.dashboard.conftest import Visit
from tests.dashboard.seeding import experiment, seed, tutors

pytestmark = [
    pytest.mark.connected,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("browser"),
]
READY = {
    "research.html": "tr.detail:not([hidden])",
    "methodology.html": "#figures .sums",
    "experiments.html": "#experiments tbody tr",
    "scenarios.html": "#overview tbody tr",
}


@LOOKS
async def test_axe_finds_nothing_on_pages_with_results(
    store: SqlStore, visit: Visit, looks: Sequence[Look]
):
    await seed(store, experiment(tutors(12)), share=0.9)
    query = "?open=reference%2Fsocratic&open=provider-1%2Ftutor-1"
    pages = {f"/{name}{query}": ready for name, ready in READY.items()}

    await assert_accessible(visit, pages, looks)


async def test_axe_finds_nothing_on_an_experiment_in_detail(store: SqlStore, visit: Visit):
    planned = experiment(tutors(6))
    await seed(store, planned, share=0.5, failing=0.2)
    path = f"/experiments.html?experiment={planned.experiment_id}"

    await assert_accessible(visit, {path: "#pending-runs tbody tr"})


async def test_axe_finds_nothing_on_a_page_without_results(visit: Visit):
    await assert_accessible(visit, {"/": "#empty"})
