"""A response is stored once: the first write of a turn wins."""

from __future__ import annotations

import asyncio

from socratic_bench.ports.stores.store import Store
from socratic_bench.scoring.exchange import EarlierTurn
from tests.contract.store.adapters import StoreAdapter
from tests.contract.store.facts import a_response, a_run, an_experiment, record_unleased


async def test_a_new_response_is_stored_as_it_is(store: Store) -> None:
    run = a_run()
    response = a_response(run, "Zażółć \u0000 gęślą 🦉\n```<b>{jaźń}</b>%s'\"; DROP TABLE cells")
    response = response.model_copy(update={"earlier_turns": (EarlierTurn("Why?", "Is it?"),)})
    assert await record_unleased(store, [response]) == [response]
    assert await store.responses([run.run_id]) == {run.run_id: [response]}


async def test_a_second_write_of_a_turn_changes_nothing_and_returns_the_first(
    store: Store,
) -> None:
    run = a_run()
    first, second = a_response(run, "What if you waited?"), a_response(run, "You should wait.")
    await record_unleased(store, [first])
    assert await record_unleased(store, [second]) == [first]
    assert await store.responses([run.run_id]) == {run.run_id: [first]}


async def test_of_two_responses_in_one_batch_the_first_is_stored(store: Store) -> None:
    run = a_run()
    first, second = a_response(run, "What if you waited?"), a_response(run, "You should wait.")
    assert await record_unleased(store, [first, second]) == [first, first]
    assert await store.responses([run.run_id]) == {run.run_id: [first]}


async def test_what_is_stored_is_returned_in_the_order_of_the_batch(store: Store) -> None:
    runs = [a_run(repeat) for repeat in range(1, 8)]
    stored = [a_response(run, f"first {run.repeat}") for run in runs[::2]]
    await record_unleased(store, stored)
    batch = [a_response(run, f"second {run.repeat}") for run in reversed(runs)]
    texts = [response.text for response in await record_unleased(store, batch)]
    assert texts == [
        "first 7", "second 6", "first 5", "second 4", "first 3", "second 2", "first 1",
    ]  # fmt: skip


async def test_recording_nothing_returns_nothing(store: Store) -> None:
    assert await record_unleased(store, []) == []


async def test_responses_of_a_run_come_in_the_order_of_their_turns(store: Store) -> None:
    run = a_run()
    turns = [
        a_response(run, f"turn {turn}", turn=turn, last_turn=turn == 11) for turn in range(1, 12)
    ]
    for response in reversed(turns):
        await record_unleased(store, [response])
    assert await store.responses([run.run_id]) == {run.run_id: turns}


async def test_a_run_without_a_response_is_not_among_the_responses(store: Store) -> None:
    one, other = a_run(1), a_run(2)
    await record_unleased(store, [a_response(one)])
    assert set(await store.responses([one.run_id, other.run_id])) == {one.run_id}
    assert await store.responses([]) == {}


async def test_a_batch_may_have_any_size(adapter: StoreAdapter, store: Store) -> None:
    many = an_experiment(models=25, scenarios=15, repeats=10)
    runs = list(many.runs())[: adapter.longest_batch]
    batch = [a_response(run, str(number)) for number, run in enumerate(runs)]
    assert await record_unleased(store, batch) == batch
    again = [response.model_copy(update={"text": "again"}) for response in batch]
    assert await record_unleased(store, again) == batch
    assert await store.responses([run.run_id for run in runs]) == {
        response.run.run_id: [response] for response in batch
    }


async def test_of_many_writers_at_once_one_wins_every_turn(
    store: Store, other_store: Store
) -> None:
    runs = [a_run(repeat) for repeat in range(1, 51)]

    async def write(number: int) -> list[str]:
        writer = (store, other_store)[number % 2]
        batch = [a_response(run, f"by writer {number}") for run in runs]
        batch = batch[number:] + batch[:number]
        stored = {
            response.run.run_id: response for response in await record_unleased(writer, batch)
        }
        return [stored[run.run_id].text for run in runs]

    first, *others = await asyncio.gather(*(write(number) for number in range(8)))
    assert all(other == first for other in others)
