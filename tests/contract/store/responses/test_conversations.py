"""A response comes back with the turns before it, however and in whichever order it was stored."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from socratic_bench.domain.response import Response
from socratic_bench.ports.stores.store import Store
from tests.contract.store.adapters import Database, opened
from tests.contract.store.facts import a_conversation, a_run, an_experiment, record_unleased


def _with_text(responses: Sequence[Response], text: str) -> list[Response]:
    """The same conversation, but for the tutor's first response."""
    first = responses[0].model_copy(update={"text": text})
    changed = [first]
    for response in responses[1:]:
        turns = (first.as_earlier_turn, *response.earlier_turns[1:])
        changed.append(response.model_copy(update={"earlier_turns": turns}))
    return changed


async def test_each_turn_of_a_conversation_comes_back_with_the_turns_before_it(
    store: Store, database: Database
) -> None:
    turns = a_conversation(a_run())
    for response in turns:
        assert await record_unleased(store, [response]) == [response]
    async with opened(database) as another:
        assert await another.responses([a_run().run_id]) == {a_run().run_id: turns}
        assert await record_unleased(another, turns) == turns
    assert await store.responses([a_run().run_id]) == {a_run().run_id: turns}


@pytest.mark.smoke
async def test_another_store_goes_on_with_a_conversation(store: Store, other_store: Store) -> None:
    run, turns = a_run(), a_conversation(a_run())
    await record_unleased(store, turns[:1])
    await record_unleased(other_store, turns[1:2])
    assert (await store.responses([run.run_id]))[run.run_id] == turns[:2]
    await record_unleased(store, turns[2:4])
    await other_store.responses([run.run_id])
    await record_unleased(other_store, turns[4:5])
    await record_unleased(store, turns[5:])
    assert await other_store.responses([run.run_id]) == {run.run_id: turns}


async def test_whole_conversations_are_stored_in_one_call(store: Store) -> None:
    runs = [a_run(repeat) for repeat in range(1, 6)]
    batch = [response for run in runs for response in a_conversation(run, turns=4)]
    random.Random(1).shuffle(batch)
    assert await record_unleased(store, batch) == batch
    assert await store.responses([run.run_id for run in runs]) == {
        run.run_id: a_conversation(run, turns=4) for run in runs
    }


@pytest.mark.parametrize("seed", range(3))
async def test_turns_that_arrive_in_any_order_lose_nothing(store: Store, seed: int) -> None:
    turns = a_conversation(a_run(), turns=6)
    unordered = random.Random(seed).sample(turns, len(turns))
    for response in unordered:
        await record_unleased(store, [response])
        stored = (await store.responses([response.run.run_id]))[response.run.run_id]
        assert response in stored
    assert await store.responses([a_run().run_id]) == {a_run().run_id: turns}


async def test_a_turn_keeps_what_it_was_asked_after_whatever_is_stored_of_earlier_turns(
    store: Store,
) -> None:
    run, turns = a_run(), a_conversation(a_run(), turns=3)
    other = _with_text(turns, "You should wait.")
    await record_unleased(store, [other[0]])
    assert await record_unleased(store, turns) == [other[0], *turns[1:]]
    assert await store.responses([run.run_id]) == {run.run_id: [other[0], *turns[1:]]}

    late, later = a_conversation(a_run(2), turns=3), a_run(2).run_id
    await record_unleased(store, late[1:])
    await record_unleased(store, _with_text(late, "You should wait.")[:1])
    assert (await store.responses([later]))[later][1:] == late[1:]


async def test_an_unscored_response_comes_with_the_turns_before_it(
    store: Store, other_store: Store
) -> None:
    experiment = await store.register(an_experiment(follow_ups=("Why?", "How?", "When?")))
    conversations = [a_conversation(run, turns=4) for run in list(experiment.runs())[:2]]
    for turns in conversations:
        for response in turns:
            await record_unleased(store, [response])
    unscored = await other_store.unscored_responses(experiment.experiment_id, 100)
    place = [(response.run.run_id, response.turn) for response in unscored]
    assert len(place) == len(set(place)) == 8
    for turns in conversations:
        assert all(response in unscored for response in turns)
    assert len(await other_store.unscored_responses(experiment.experiment_id, 3)) == 3
