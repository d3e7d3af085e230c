"""The pending turns of an experiment: those that were leased or answered, and have no score."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.batches import together
from socratic_bench.adapters.stores.dynamodb.table.items import Item
from socratic_bench.adapters.stores.dynamodb.table.table import Table
from socratic_bench.adapters.stores.dynamodb.turns.turn import Turn, turn_of_item
from socratic_bench.domain.grading import is_grading
from socratic_bench.ports.stores.responses import TurnKey


async def pending_turns(table: Table, experiment_id: str) -> list[Turn]:
    """Read all pending turns of an experiment."""
    read = await together(_of_shard(table, experiment_id, shard) for shard in range(keys.SHARDS))
    return [turn for turns in read for turn in turns]


async def pending_pages(table: Table, experiment_id: str) -> AsyncIterator[list[Turn]]:
    """Yield the pending turns of an experiment, one page of a partition after the other."""
    for shard in range(keys.SHARDS):
        async for page in table.pages(keys.facts(experiment_id, shard), keys.PENDING, limit=500):
            yield await _read(table, page)


async def unscored_turns(table: Table, experiment_id: str, most: int) -> list[Turn]:
    """Read at most so many turns with a response and without its score.

    A grading needs no score. Its mark stays, for the removal of the experiment.
    """
    unscored: list[Turn] = []
    async for turns in pending_pages(table, experiment_id):
        answered = [turn for turn in turns if turn.is_answered and not is_grading(turn.key.run_id)]
        unscored += await _without_score(table, answered)
        if len(unscored) >= most:
            break
    return unscored[:most]


async def fetch_bodies(table: Table, turns: Iterable[Turn]) -> None:
    """Read the records that are in the bucket."""
    elsewhere = [turn for turn in turns if turn.body]
    records = await together(table.bodies.get(turn.body) for turn in elsewhere)
    for turn, record in zip(elsewhere, records, strict=True):
        turn.record = record


async def _without_score(table: Table, turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns without a score; the others are no longer pending.

    A score can arrive before its response is stored, and the response marks its turn.
    """
    scores = {
        turn.key: keys.score(turn.experiment_id, turn.key.run_id, turn.profile, turn.key.turn)
        for turn in turns
    }
    found = await table.get(scores.values())
    scored = [turn for turn in turns if scores[turn.key] in found]
    await table.write([], (keys.pending(turn.experiment_id, *turn.key) for turn in scored))
    return [turn for turn in turns if scores[turn.key] not in found]


async def _of_shard(table: Table, experiment_id: str, shard: int) -> list[Turn]:
    return await _read(table, await table.query(keys.facts(experiment_id, shard), keys.PENDING))


async def _read(table: Table, marks: list[Item]) -> list[Turn]:
    turns = {keys.turn(key.run_id, key.turn): key for key in map(_turn_key, marks)}
    found = await table.get(turns)
    return [turn_of_item(turns[key], item) for key, item in found.items()]


def _turn_key(mark: Item) -> TurnKey:
    return TurnKey(str(mark["run"]), int(mark["turn"]))
