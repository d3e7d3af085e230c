"""Scores by several profiles stand beside each other, and none changes the figures of another."""

from __future__ import annotations

import pytest

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.store import Store
from socratic_bench.results.verification import verify
from socratic_bench.scoring.profile import CANONICAL
from tests.contract.store.facts import (
    MONDAY,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    contents,
    record_unleased,
)

OTHER, THIRD = "other-v1", "another-v1"


@pytest.fixture
async def experiment(store: Store) -> Experiment:
    return await store.register(an_experiment(scenarios=1, repeats=1))


async def test_an_experiment_has_its_own_profile_first_and_others_by_name(
    store: Store, other_store: Store, experiment: Experiment
) -> None:
    id_ = experiment.experiment_id
    run, failed = experiment.runs()
    assert await store.scored_profiles([id_, "exp-unknown"]) == {id_: (CANONICAL,)}
    await store.fold([a_score(run, profile=OTHER)], [])
    assert await other_store.scored_profiles([id_]) == {id_: (CANONICAL, OTHER)}
    await other_store.fold([a_score(run)], [a_failure(failed, profile=THIRD)])
    assert await store.scored_profiles([id_]) == {id_: (CANONICAL, THIRD, OTHER)}


async def test_each_experiment_has_profiles_of_its_own(
    store: Store, experiment: Experiment
) -> None:
    later = await store.register(an_experiment(scenarios=1, occasion="later"))
    await store.fold([a_score(next(later.runs()), profile=OTHER)], [])
    assert await store.scored_profiles([experiment.experiment_id, later.experiment_id]) == {
        experiment.experiment_id: (CANONICAL,),
        later.experiment_id: (CANONICAL, OTHER),
    }
    assert await store.scored_profiles([]) == {}


async def test_a_run_is_done_under_each_profile_by_itself(
    store: Store, experiment: Experiment
) -> None:
    id_ = experiment.experiment_id
    run, failed = experiment.runs()
    ids = [run.run_id, failed.run_id]
    turns = [a_response(run, turn=1, last_turn=False), a_response(run, turn=2)]
    await record_unleased(store, turns)
    first, last = a_score(run, turn=1, last_turn=False), a_score(run, turn=2)
    await store.fold([first, last], [a_failure(failed)])
    assert await store.done_runs(id_, ids, OTHER) == set()
    await store.fold(
        [last.model_copy(update={"profile": OTHER})], [a_failure(failed, profile=OTHER)]
    )
    assert await store.done_runs(id_, ids, OTHER) == {failed.run_id}
    await store.fold([first.model_copy(update={"profile": OTHER})], [])
    assert await store.done_runs(id_, ids, OTHER) == set(ids)
    assert await store.done_runs(id_, ids, CANONICAL) == set(ids)
    assert await store.done_runs("exp-unknown", ids, OTHER) == set()


async def test_scores_by_another_profile_change_neither_progress_nor_other_cells(
    store: Store, experiment: Experiment
) -> None:
    id_ = experiment.experiment_id
    run, failed = experiment.runs()
    await store.fold([a_score(run)], [a_failure(failed)])
    completed_at = await store.complete(id_, MONDAY)
    own = contents(await store.cells([id_]))
    for _ in range(2):
        await store.fold(
            [a_score(run, profile=OTHER, overall=0.25)], [a_failure(failed, profile=OTHER)]
        )
    assert completed_at is not None
    assert await store.complete(id_, MONDAY) == completed_at
    assert await store.progress(id_) == Progress(2, done=2, failed=1)
    assert await store.unscored_responses(id_, 10) == []
    cells = contents(await store.cells([id_]))
    assert {key: cell for key, cell in cells.items() if key.profile == CANONICAL} == own
    assert len(cells) == 2 * len(own)
    assert contents(await store.cells([id_], profile=CANONICAL)) == own
    others = {key: cell for key, cell in cells.items() if key.profile == OTHER}
    assert contents(await store.cells([id_], profile=OTHER)) == others
    assert await store.cells(None, run.model_id, "nobody's") == []
    assert await verify(store, id_) == []


async def test_a_deleted_experiment_has_no_profiles_and_keeps_no_score_by_any(
    store: Store, experiment: Experiment
) -> None:
    id_ = experiment.experiment_id
    run, failed = experiment.runs()
    scores = [a_score(run), a_score(run, profile=OTHER)]
    await store.fold(scores, [a_failure(failed), a_failure(failed, profile=OTHER)])
    await store.change_state(id_, ExperimentState.DELETED)
    assert await store.scored_profiles([id_]) == {}
    while await store.delete_rows(id_):
        pass
    assert await store.deletable(None) == []
    assert await store.cells([id_]) == []
    assert [page async for page in store.score_rows(id_) if page] == []
    assert [page async for page in store.failure_rows(id_) if page] == []
