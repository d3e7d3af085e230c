"""The turns of runs: their calls, leases and responses; and those that have no score yet."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.clients import together
from socratic_bench.adapters.stores.dynamodb.items import VERSION, Item, Value, at, unpacked
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.domain.leasing import TurnCalls
from socratic_bench.domain.run import is_side_run
from socratic_bench.ports.stores.responses import TurnKey


@dataclass(slots=True)
class StoredTurn:
    """A turn as the store has it, or an empty one."""

    experiment_id: str
    key: TurnKey
    calls: TurnCalls = field(default_factory=TurnCalls)
    record: Value | None = None
    """The packed record of the response; None without one, and for one in the bucket."""

    body: str = ""
    """The key of the record in the bucket; empty for a record that the item holds."""

    profile: str = ""
    """The profile to score the response by."""

    is_last: bool = False
    """Whether the response ends its run."""

    version: int = 0
    """The version that was read; 0: the store has no such turn."""

    is_changed: bool = False

    @property
    def is_answered(self) -> bool:
        return self.record is not None or bool(self.body)

    def answer(self, record: Value | None, body: str, profile: str, *, is_last: bool) -> None:
        """Store the response, or the key of its body."""
        self.record, self.body, self.profile, self.is_last = record, body, profile, is_last
        self.is_changed = True

    @property
    def row(self) -> tuple[str, int, str]:
        """The run, the turn and the record of the response, which was read from the bucket."""
        return self.key.run_id, self.key.turn, unpacked(self.record or "")

    def item(self) -> Item:
        """The item without its version; attributes without a value are left out."""
        calls = self.calls
        attributes: dict[str, Value | None] = {
            "experiment": self.experiment_id,
            "calls": calls.calls or None,
            "owner": calls.owner if calls.lease_id else None,
            "until": calls.until or None,
            "reserved": calls.reserved or None,
            "lease": calls.lease_id or None,
            "lapsed": json.dumps(calls.lapsed) if calls.lapsed else None,
            "record": self.record,
            "body": self.body or None,
            "profile": self.profile or None,
            "is_last": self.is_last or None,
        }
        return at(keys.turn(*self.key), attributes)


def turn_of_item(key: TurnKey, item: Item) -> StoredTurn:
    return StoredTurn(
        experiment_id=str(item["experiment"]),
        key=key,
        calls=TurnCalls(
            calls=int(item.get("calls", 0)),
            owner=str(item.get("owner", "")),
            until=int(item.get("until", 0)),
            reserved=int(item.get("reserved", 0)),
            lease_id=str(item.get("lease", "")),
            lapsed=json.loads(str(item.get("lapsed", "{}"))),
        ),
        record=item.get("record"),
        body=str(item.get("body", "")),
        profile=str(item.get("profile", "")),
        is_last=bool(item.get("is_last", False)),
        version=int(item[VERSION]),
    )


async def pending_turns(table: DynamoTable, experiment_id: str) -> list[StoredTurn]:
    """Read all pending turns of an experiment."""
    read = await together(_of_shard(table, experiment_id, shard) for shard in range(keys.SHARDS))
    return [turn for turns in read for turn in turns]


async def pending_pages(table: DynamoTable, experiment_id: str) -> AsyncIterator[list[StoredTurn]]:
    """Yield the pending turns of an experiment, one page of a partition after the other."""
    for shard in range(keys.SHARDS):
        async for page in table.pages(keys.facts(experiment_id, shard), keys.PENDING, limit=500):
            yield await _read(table, page)


async def unscored_turns(table: DynamoTable, experiment_id: str, most: int) -> list[StoredTurn]:
    """Read at most so many turns with a response and without its score.

    A turn of a side run needs no score. Its mark stays, for the removal of the experiment.
    """
    unscored: list[StoredTurn] = []
    async for turns in pending_pages(table, experiment_id):
        answered = [turn for turn in turns if turn.is_answered and not is_side_run(turn.key.run_id)]
        unscored += await _without_score(table, answered)
        if len(unscored) >= most:
            break
    return unscored[:most]


async def fetch_bodies(table: DynamoTable, turns: Iterable[StoredTurn]) -> None:
    """Read the records that are in the bucket."""
    elsewhere = [turn for turn in turns if turn.body]
    records = await together(table.bodies.get(turn.body) for turn in elsewhere)
    for turn, record in zip(elsewhere, records, strict=True):
        turn.record = record


async def _without_score(table: DynamoTable, turns: Sequence[StoredTurn]) -> list[StoredTurn]:
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


async def _of_shard(table: DynamoTable, experiment_id: str, shard: int) -> list[StoredTurn]:
    return await _read(table, await table.query(keys.facts(experiment_id, shard), keys.PENDING))


async def _read(table: DynamoTable, marks: list[Item]) -> list[StoredTurn]:
    named = (TurnKey(str(mark["run"]), int(mark["turn"])) for mark in marks)
    turns = {keys.turn(key.run_id, key.turn): key for key in named}
    found = await table.get(turns)
    return [turn_of_item(turns[key], item) for key, item in found.items()]
