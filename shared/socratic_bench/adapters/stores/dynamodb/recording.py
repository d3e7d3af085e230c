"""The storage of responses of one experiment, with the settlement of their leases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from socratic_bench.adapters.stores.conversations import (
    KnownConversations,
    record_without_earlier_turns,
    turn_of,
)
from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.books import (
    TURNS_AT_ONCE,
    Books,
    read_books,
    written,
)
from socratic_bench.adapters.stores.dynamodb.items import (
    MOST_BYTES,
    MOST_ITEM_BYTES,
    SMALL,
    Value,
    packed,
)
from socratic_bench.adapters.stores.dynamodb.table import Table
from socratic_bench.adapters.stores.records import record_of
from socratic_bench.domain.response import Response
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import TurnKey


class Reply(NamedTuple):
    """A response to store, and the lease of its call."""

    response: Response
    lease_id: str | None

    @property
    def turn(self) -> TurnKey:
        return turn_of(self.response)


class StoredRecord(NamedTuple):
    """The packed record of a response, or the key of its body in the bucket."""

    record: Value | None = None
    body: str = ""


class Recording:
    """Stores the replies of one experiment."""

    def __init__(self, table: Table, experiment_id: str, known: KnownConversations) -> None:
        self._table = table
        self._experiment_id = experiment_id
        self._known = known
        self.first: dict[TurnKey, Response] = {}
        """The responses that this call stored."""

        self.is_deleted = False
        """Whether the experiment is deleted: the responses are not stored."""

        self.is_unchecked = False
        """Whether the experiment may have been deleted since the account was read."""

    async def record(self, replies: Iterable[Reply]) -> None:
        """Store replies, the first turns of runs first: later ones leave those to their items."""
        async with self._table.alone(self._experiment_id):
            for some in _in_parts(sorted(replies, key=lambda reply: reply.turn.turn)):
                await self._record_some(some)

    async def _record_some(self, replies: Sequence[Reply]) -> None:
        turns = {reply.turn for reply in replies}
        records = {reply.turn: await self._record_of(reply.response) for reply in reversed(replies)}
        backoff = self._table.backoff()
        while True:
            books, _ = await read_books(self._table, self._experiment_id, turns)
            if books.account.is_deleted:
                self.is_deleted = True
                return
            new = {
                reply.turn: reply.response
                for reply in replies
                if _record(books, reply, records[reply.turn])
            }
            if await written(self._table, books):
                break
            await backoff.pause()
        for turn in new:
            self._known.note(turn)
        self.first |= new
        # A transaction that changes the account meets a change of the state there.
        self.is_unchecked |= bool(new) and not books.touches_account

    async def _record_of(self, response: Response) -> StoredRecord:
        digest = self._known.digest_before(response)
        text = (
            record_of(response)
            if digest is None
            else record_without_earlier_turns(response, digest)
        )
        record = packed(text)
        if len(record) <= MOST_ITEM_BYTES:
            return StoredRecord(record)
        content = record if isinstance(record, bytes) else record.encode()
        place = f"{keys.LARGE_RESPONSES}{response.run.run_id}/{response.turn}"
        return StoredRecord(body=await self._table.bodies.put(place, content))


def _record(books: Books, reply: Reply, record: StoredRecord) -> bool:
    """Store a response unless its turn has one, and settle its lease; tells whether it is new."""
    response, lease_id = reply
    turn, charged = books.turns[reply.turn], response.charged_nanodollars
    is_new = not turn.is_answered
    if lease_id is not None or charged is not None:
        lease = LeaseKey(books.experiment_id, *reply.turn, lease_id or "")
        if not books.settle(lease, charged) and is_new:
            books.commit(charged or 0)
    if is_new:
        turn.answer(record.record, record.body, response.profile, is_last=response.last_turn)
    return is_new


def _in_parts(replies: Sequence[Reply]) -> Iterator[list[Reply]]:
    """Yield the replies in order, as many as one transaction holds, and no two turns of a run."""
    part: list[Reply] = []
    turns: dict[str, TurnKey] = {}
    size = 0
    for reply in replies:
        known = turns.get(reply.turn.run_id, reply.turn)
        size += _most_bytes(reply.response)
        if known != reply.turn or len(turns) == TURNS_AT_ONCE or (part and size > MOST_BYTES):
            yield part
            part, turns, size = [], {}, _most_bytes(reply.response)
        part.append(reply)
        turns[reply.turn.run_id] = reply.turn
    if part:
        yield part


def _most_bytes(response: Response) -> int:
    """Return about the most bytes that a record takes in the table."""
    earlier = sum(len(turn.student) + len(turn.tutor) for turn in response.earlier_turns)
    return SMALL + 4 * (len(response.text) + len(response.student_message) + earlier)
