"""A person pins the experiments of the default leaderboard."""

from __future__ import annotations

import pytest

from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import StoreError
from socratic_bench.ports.stores.store import Store
from tests.contract.store.facts import MINUTE, MONDAY, an_experiment


async def test_a_pin_is_kept_in_lists_and_over_a_new_registration_until_it_is_taken_out(
    store: Store, other_store: Store
) -> None:
    planned = an_experiment()
    id_ = (await store.register(planned)).experiment_id
    await store.register(an_experiment(occasion="another"))
    assert [each.pinned_at for each in await store.outlines()] == [None, None]

    await store.pin(id_, MONDAY)
    await store.pin(id_, MONDAY + MINUTE)
    again = await store.register(planned)

    assert again.experiment_id == id_
    assert again.manifest.pinned_at == MONDAY + MINUTE
    for each in (store, other_store):
        pinned = {outline.experiment_id: outline.pinned_at for outline in await each.outlines()}
        assert pinned.pop(id_) == MONDAY + MINUTE
        assert list(pinned.values()) == [None]

    await store.pin(id_, None)
    assert await other_store.experiment(id_) == planned


async def test_a_pin_changes_the_revision_and_no_state(store: Store) -> None:
    id_ = (await store.register(an_experiment())).experiment_id
    await store.change_state(id_, ExperimentState.PAUSED)
    before = await store.revision()

    await store.pin(id_, MONDAY)

    assert await store.revision() != before
    assert (await store.states([id_]))[id_] is ExperimentState.PAUSED


async def test_an_experiment_that_is_not_there_or_was_deleted_cannot_be_pinned(
    store: Store,
) -> None:
    deleted = (await store.register(an_experiment())).experiment_id
    await store.change_state(deleted, ExperimentState.DELETED)
    for id_ in (deleted, "exp-nowhere"):
        for at in (MONDAY, None):
            with pytest.raises(StoreError, match=id_):
                await store.pin(id_, at)
