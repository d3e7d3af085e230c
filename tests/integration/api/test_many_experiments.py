"""The queries of the store, and the plans read, do not grow with the number of experiments."""

from __future__ import annotations

from collections import Counter

import httpx
import pytest

from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.experiment.manifest import Manifest
from socratic_bench.results.cache import pools
from socratic_bench.results.leaderboard import selection
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from tests.contract.store.facts import MINUTE, MONDAY, a_failure, an_experiment
from tests.dashboard.seeding import experiment, seed, tutors
from tests.integration.api.conftest import opened

EVERY_PAGE = ["/api/experiments?limit=500", "/api/model-comparison", "/api/cost-analysis"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many statements were executed, and how many plans read."""
    counts: Counter[str] = Counter()
    execute, read = Transaction.execute, Manifest.model_validate_json

    async def counted(self: Transaction, *given: object) -> object:
        counts["statements"] += 1
        return await execute(self, *given)  # type: ignore[arg-type]

    def read_and_counted(*given: object, **options: object) -> Manifest:
        counts["plans"] += 1
        return read(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Transaction, "execute", counted)
    monkeypatch.setattr(Manifest, "model_validate_json", read_and_counted)
    return counts


async def register(store: SqlStore, numbers: range) -> None:
    for number in numbers:
        created_at = MONDAY + number * MINUTE
        await store.register(an_experiment(occasion=f"{number}", created_at=created_at))


async def test_no_more_is_asked_of_the_store_for_more_experiments(
    store: SqlStore, settings: ApiSettings, asked: Counter[str]
):
    statements = []
    for numbers in (range(3), range(3, 40)):
        await register(store, numbers)
        asked.clear()
        # An answer that was slow to make stays fresh for longer: another API has none of them.
        async with opened(store, settings) as client:
            for page in EVERY_PAGE:
                assert (await client.get(page)).status_code == 200
        statements.append(asked["statements"])
    few, many = statements
    # The first answer under new conditions reads one plan for the baseline.
    assert few - 1 <= many <= few


async def test_a_plan_is_read_once_until_it_changes(
    store: SqlStore, client: httpx.AsyncClient, asked: Counter[str]
):
    await register(store, range(20))
    for page in EVERY_PAGE:
        await client.get(page)
    asked.clear()
    [run, *_] = an_experiment(occasion="3").runs()
    await store.fold([], [a_failure(run)])
    for page in EVERY_PAGE:
        await client.get(page)
    assert asked["plans"] == 0

    await register(store, range(20, 21))
    asked.clear()
    for page in EVERY_PAGE:
        await client.get(page)
    assert asked["plans"] <= 2


async def test_a_table_of_all_experiments_reads_cells_a_page_at_a_time_and_one_plan(
    store: SqlStore, asked: Counter[str]
):
    await register(store, range(210))
    await store.outlines()
    asked.clear()
    table = await model_comparison(store, "all")
    assert len(table.experiments) == 210
    # One plan at most, for what the constant reply scores on its scenarios.
    assert asked["plans"] <= 1
    # Outlines, pages of cells, two for the profiles, and one for what they cost.
    assert asked["statements"] == 1 + 210 // 10 + 2 + 1


async def test_a_table_of_many_experiments_is_the_fold_of_all_of_them(store: SqlStore):
    for week in range(25):
        planned = experiment(tutors(3), occasion=f"{week}", created_at=MONDAY + week * MINUTE)
        await seed(store, planned, share=0.1 + week / 100, failing=0.1)

    together = await model_comparison(store, "all")

    alone = [await model_comparison(store, each.experiment_id) for each in await store.outlines()]
    for row in together.models:
        rows = [model for each in alone for model in each.models if model.model_id == row.model_id]
        assert row.total_runs == sum(each.total_runs for each in rows)
        assert row.scored_responses == sum(each.scored_responses for each in rows)
        assert row.total_input_tokens == sum(each.total_input_tokens or 0 for each in rows)
    done = {each.experiments[0].experiment_id: each.experiments[0].done for each in alone}
    assert {each.experiment_id: each.done for each in together.experiments} == done


@pytest.mark.parametrize("bound", ["MOST_EXPERIMENTS", "MOST_CELLS"])
async def test_a_table_has_an_end_and_says_so(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, bound: str
):
    monkeypatch.setattr(pools, "EXPERIMENTS_PER_QUERY", 1)
    for week in range(5):
        planned = experiment(tutors(2), occasion=f"{week}", created_at=MONDAY + week * MINUTE)
        await seed(store, planned)
    cells = len(await store.cells())
    newest = [each.experiment_id for each in await store.outlines()][:3]
    if bound == "MOST_EXPERIMENTS":
        monkeypatch.setattr(selection, bound, 3)
    else:
        monkeypatch.setattr(pools, bound, cells // 5 * 2 + 1)

    table = await model_comparison(store, "all")

    assert [each.experiment_id for each in table.experiments] == newest
    assert {row.experiment_ids for row in table.models} == {(*newest,)}
    assert [(each.reason, each.count) for each in table.left_out] == [("too_many", 2)]
    assert "[no room in one table]" in (table.note or "")
