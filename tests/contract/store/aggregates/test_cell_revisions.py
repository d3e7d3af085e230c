"""An experiment's cell revision stands for one state of its cells."""

from __future__ import annotations

import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import a_failure, a_score, an_experiment


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment(scenarios=1, repeats=2))


async def test_it_changes_with_every_change_of_a_cell_and_never_comes_back(
    store: Store, other_store: Store, experiment: Experiment
) -> None:
    id_ = experiment.experiment_id
    run, failed, *_ = experiment.runs()
    seen = [await store.cell_revisions([id_])]

    async def changed() -> bool:
        seen.append(await other_store.cell_revisions([id_]))
        assert seen[-1].keys() == seen[0].keys()
        return seen[-1] not in seen[:-1] or not seen[0]  # a store may count none

    await store.fold([a_score(run)], [])
    assert await changed()
    await other_store.fold([], [a_failure(failed)])
    assert await changed()
    await store.fold([a_score(failed)], [])  # withdraws the failure
    assert await changed()
    await store.fold([a_score(run, profile="other-v1")], [])
    assert await changed()
    await store.fold([a_score(run)], [a_failure(failed)])  # known already
    assert await store.cell_revisions([id_]) == seen[-1]


async def test_it_is_of_one_experiment(store: Store, experiment: Experiment) -> None:
    other = await store.register(an_experiment(scenarios=1, occasion="other"))
    ids = [experiment.experiment_id, other.experiment_id]
    before = await store.cell_revisions([*ids, "exp-unknown"])
    assert before.keys() <= set(ids)
    await store.fold([a_score(next(other.runs()))], [])
    after = await store.cell_revisions(ids)
    assert before.get(ids[0]) == after.get(ids[0])
    assert await store.cell_revisions([]) == {}


async def test_a_deleted_experiment_has_none(store: Store, experiment: Experiment) -> None:
    id_ = experiment.experiment_id
    await store.fold([a_score(next(experiment.runs()))], [])
    await store.change_state(id_, ExperimentState.DELETED)
    assert await store.cell_revisions([id_]) == {}
