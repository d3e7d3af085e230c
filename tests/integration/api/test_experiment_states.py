"""/api/experiments marks paused and cancelled experiments, and lists no deleted one."""

from __future__ import annotations

import httpx
import pytest

from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.experiment.state import ExperimentState
from tests.contract.store.facts import a_score, an_experiment
from tests.waiting import until


@pytest.mark.parametrize(
    ("state", "shown"),
    [("paused", ["paused"]), ("cancelled", ["cancelled"]), ("deleted", [])],
)
async def test_the_list_shows_a_change_of_state_at_once(
    store: SqlStore, client: httpx.AsyncClient, state: str, shown: list[str]
) -> None:
    experiment = await store.register(an_experiment())
    await store.fold([a_score(next(experiment.runs()))], [])

    async def states() -> list[str]:
        listed = (await client.get("/api/experiments")).json()
        assert listed["total"] == len(listed["experiments"])
        return [each["state"] for each in listed["experiments"]]

    await until(states, lambda found: found == ["overdue"], "the experiment")
    await store.change_state(experiment.experiment_id, ExperimentState(state))
    await until(states, lambda found: found == shown, "the change of state")
    models = (await client.get("/api/model-comparison")).json()["models"]
    assert bool(models) is bool(shown)
