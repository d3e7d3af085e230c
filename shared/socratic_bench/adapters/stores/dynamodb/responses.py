"""The role `Responses` of the store in DynamoDB."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from socratic_bench.adapters.stores.conversations import (
    KnownConversations,
    ResponseReader,
    record_without_earlier_turns,
    turn_of,
)
from socratic_bench.adapters.stores.dynamodb import keys
from socratic_bench.adapters.stores.dynamodb.books import (
    TURNS_AT_ONCE,
    Books,
    account_of,
    read_books,
    written,
)
from socratic_bench.adapters.stores.dynamodb.clients import together
from socratic_bench.adapters.stores.dynamodb.items import (
    MISSING,
    MOST_BYTES,
    MOST_ITEM_BYTES,
    SMALL,
    Item,
    Value,
    at,
    packed,
    unpacked,
)
from socratic_bench.adapters.stores.dynamodb.registration import delete_rows
from socratic_bench.adapters.stores.dynamodb.role import DynamoDBRole, Now, ends_before_close
from socratic_bench.adapters.stores.dynamodb.table import DynamoTable
from socratic_bench.adapters.stores.dynamodb.turns import (
    StoredTurn,
    fetch_bodies,
    turn_of_item,
    unscored_turns,
)
from socratic_bench.adapters.stores.records import Records, record_of
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import RunFailure
from socratic_bench.ports.stores.leases import LeaseKey
from socratic_bench.ports.stores.responses import RecordedFailure, TurnKey, latest_of_runs


class LeasedReply(NamedTuple):
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


class ReplyRecording:
    """Stores the replies of one experiment."""

    def __init__(self, table: DynamoTable, experiment_id: str, known: KnownConversations) -> None:
        self._table = table
        self._experiment_id = experiment_id
        self._known = known
        self.first: dict[TurnKey, Response] = {}
        """The responses that this call stored."""

        self.is_deleted = False
        """Whether the experiment is deleted: the responses are not stored."""

        self.is_unchecked = False
        """Whether the experiment may have been deleted since the account was read."""

    async def record(self, replies: Iterable[LeasedReply]) -> None:
        """Store replies, the first turns of runs first: later ones leave those to their items."""
        async with self._table.alone(self._experiment_id):
            for some in _in_parts(sorted(replies, key=lambda reply: reply.turn.turn)):
                await self._record_some(some)

    async def _record_some(self, replies: Sequence[LeasedReply]) -> None:
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


def _record(books: Books, reply: LeasedReply, record: StoredRecord) -> bool:
    """Store a response unless its turn has one, and settle its lease; tells whether it is new."""
    response, lease_id = reply
    turn, charged = books.turns[reply.turn], response.charged_nanodollars
    is_new = not turn.is_answered
    if lease_id is not None or charged is not None:
        lease = LeaseKey(books.experiment_id, *reply.turn, lease_id or "")
        if not books.settle(lease, charged) and is_new:
            books.account.pay(charged or 0, books.experiment_id)
            books.account.reused += response.reused_nanodollars
    if is_new:
        turn.answer(record.record, record.body, response.profile, is_last=response.last_turn)
    return is_new


def _in_parts(replies: Sequence[LeasedReply]) -> Iterator[list[LeasedReply]]:
    """Yield the replies in order, as many as one transaction holds, and no two turns of a run."""
    part: list[LeasedReply] = []
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
    key = sum(map(len, response.answer_key))
    return SMALL + 4 * (len(response.text) + len(response.student_message) + earlier + key)


def failure_of_item(item: Item) -> Sequence[Any]:
    """Return (run_id, record, retry)."""
    return str(item["run"]), unpacked(item["record"]), int(item["retry"])


def _recorded_failure(row: Sequence[Any]) -> RecordedFailure:
    _, record, retry = row
    return RecordedFailure(RunFailure.model_validate_json(record), retry)


FAILURES = Records("failed_runs", 1, _recorded_failure)


class RecordedFailures:
    """Records failures, each with a mark among the failures of its experiment."""

    def __init__(self, table: DynamoTable) -> None:
        self._table = table

    async def record(self, failures: Collection[RecordedFailure]) -> set[str]:
        """Store failures of different runs, each unless the store has one as late.

        Returns the experiments that were deleted meanwhile. Those of deleted ones are not stored.
        """
        ids = {failed.failure.run.experiment_id for failed in failures}
        kept = ids - await self._deleted_among(ids)
        await together(
            self._record(failed) for failed in failures if failed.failure.run.experiment_id in kept
        )
        return await self._deleted_among(kept)

    async def _record(self, failed: RecordedFailure) -> None:
        run = failed.failure.run
        attributes: dict[str, Value] = {
            "run": run.run_id,
            "retry": failed.retry,
            "record": packed(record_of(failed.failure)),
        }
        transaction = self._table.transaction()
        transaction.put(
            at(keys.recorded_failure(run.run_id), attributes),
            f"{MISSING} OR #retry < :retry",
            {"retry": failed.retry},
        )
        mark: dict[str, Value] = {"run": run.run_id, "retry": failed.retry}
        transaction.put(at(keys.told_failure(run.experiment_id, run.run_id), mark))
        await self._table.commit(transaction)

    async def _deleted_among(self, experiment_ids: Iterable[str]) -> set[str]:
        ids = list(experiment_ids)
        accounts = await together(account_of(self._table, id_) for id_ in ids)
        return {id_ for id_, account in zip(ids, accounts, strict=True) if account.is_deleted}

    async def unfolded(
        self, experiment_id: str, profile: str | None, limit: int
    ) -> list[RunFailure]:
        """Return recorded failures that are further on than the folded one of their run."""
        unfolded: list[RunFailure] = []
        async for marks in self._table.pages(keys.failures(experiment_id), keys.TOLD, limit=500):
            unfolded += await self._unfolded_among(experiment_id, profile, marks)
            if len(unfolded) >= limit:
                break
        return unfolded[:limit]

    async def _unfolded_among(
        self, experiment_id: str, profile: str | None, marks: Sequence[Item]
    ) -> list[RunFailure]:
        runs = [str(mark["run"]) for mark in marks]
        folded_keys = [keys.folded_failure(experiment_id, run, profile or "") for run in runs]
        found = await self._table.get([*map(keys.recorded_failure, runs), *folded_keys])
        turns = {
            run: int(found[key]["turn"])
            for run, key in zip(runs, folded_keys, strict=True)
            if key in found
        }
        rows = [found[key] for key in map(keys.recorded_failure, runs) if key in found]
        recorded = [each.failure for each in FAILURES.facts(map(failure_of_item, rows))]
        unfolded = [each for each in recorded if turns.get(each.run.run_id, 0) < each.turn]
        await self._unmark(
            {each.run.run_id for each in recorded} - _runs(unfolded), marks, experiment_id
        )
        return unfolded

    async def _unmark(self, folded: set[str], marks: Sequence[Item], experiment_id: str) -> None:
        """Remove the marks of folded failures, unless a later one was recorded meanwhile."""
        removals = []
        for mark in marks:
            if (run := str(mark["run"])) in folded:
                removal = self._table.transaction()
                removal.delete(
                    keys.told_failure(experiment_id, run),
                    "#retry = :retry",
                    {"retry": mark["retry"]},
                )
                removals.append(self._table.commit(removal))
        await together(removals)


def _runs(failures: Iterable[RunFailure]) -> set[str]:
    return {failure.run.run_id for failure in failures}


class DynamoDBResponses(DynamoDBRole):
    """Records responses and failures, and finds unfolded ones."""

    def __init__(self, table: DynamoTable, now: Now | None = None) -> None:
        super().__init__(table, now)
        self._known = KnownConversations()

    @ends_before_close
    async def record(
        self, responses: Sequence[Response], lease_ids: Sequence[str | None] = ()
    ) -> Sequence[Response]:
        of_experiments: defaultdict[str, list[LeasedReply]] = defaultdict(list)
        ids = lease_ids or [""] * len(responses)
        for response, lease_id in zip(responses, ids, strict=True):
            of_experiments[response.run.experiment_id].append(LeasedReply(response, lease_id))
        stored: dict[TurnKey, Response] = {}
        for some in await together(
            self._record(id_, replies) for id_, replies in of_experiments.items()
        ):
            stored |= some
        return [stored.get(turn_of(response), response) for response in responses]

    async def _record(
        self, experiment_id: str, replies: Sequence[LeasedReply]
    ) -> Mapping[TurnKey, Response]:
        """Record replies of one experiment; returns what the store has for their turns."""
        known = KnownConversations(beneath=self._known)
        recording = ReplyRecording(self._table, experiment_id, known)
        await recording.record(replies)
        if recording.is_unchecked:
            account = await account_of(self._table, experiment_id)
            if account.is_deleted:
                await _remove_late_rows(self._table, experiment_id)
                return {}
        known.add_beneath()
        if recording.is_deleted:
            return {}
        stored = {reply.turn: reply.response for reply in replies} | recording.first
        earlier = {reply.turn for reply in replies} - recording.first.keys()
        if earlier:
            runs = await self.responses({run_id for run_id, _ in earlier})
            found = {turn_of(each): each for responses in runs.values() for each in responses}
            stored |= {turn: found[turn] for turn in earlier if turn in found}
        return stored

    async def responses(self, run_ids: Collection[str]) -> Mapping[str, Sequence[Response]]:
        ids = list(dict.fromkeys(run_ids))
        runs = await together(self._turns_of(id_) for id_ in ids)
        found = self._read_responses(turn for turns in runs for turn in turns)
        of_runs: defaultdict[str, list[Response]] = defaultdict(list)
        for response in found:
            of_runs[response.run.run_id].append(response)
        return {id_: of_runs[id_] for id_ in ids if id_ in of_runs}

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        unscored = await unscored_turns(self._table, experiment_id, limit)
        await fetch_bodies(self._table, unscored)
        wanted = {turn.key for turn in unscored}
        later = {key.run_id for key in wanted if key.turn > 1}
        runs = await together(self._turns_of(run_id) for run_id in later)
        first = [turn for turn in unscored if turn.key.run_id not in later]
        found = self._read_responses(turn for turns in (first, *runs) for turn in turns)
        return [response for response in found if turn_of(response) in wanted]

    @ends_before_close
    async def record_failures(self, failures: Sequence[RecordedFailure]) -> None:
        latest = latest_of_runs(failures)
        recorded = RecordedFailures(self._table)
        for experiment_id in await recorded.record(latest.values()):
            await _remove_late_rows(self._table, experiment_id)

    async def recorded_failures(self, run_ids: Collection[str]) -> Mapping[str, RecordedFailure]:
        found = await self._table.get(map(keys.recorded_failure, run_ids))
        recorded = FAILURES.facts(failure_of_item(item) for item in found.values())
        return {each.failure.run.run_id: each for each in recorded}

    async def unfolded_failures(self, experiment_id: str, limit: int) -> Sequence[RunFailure]:
        account = await account_of(self._table, experiment_id)
        recorded = RecordedFailures(self._table)
        return await recorded.unfolded(experiment_id, account.profile, limit)

    async def _turns_of(self, run_id: str) -> list[StoredTurn]:
        """Read the turns of a run that have a response, in their order."""
        items = await self._table.query(keys.run(run_id), keys.TURN)
        turns = (turn_of_item(TurnKey(run_id, keys.number_of_turn(item)), item) for item in items)
        answered = [turn for turn in turns if turn.is_answered]
        await fetch_bodies(self._table, answered)
        return answered

    def _read_responses(self, turns: Iterable[StoredTurn]) -> list[Response]:
        reader = ResponseReader()
        responses = Records("responses", 2, reader.read).facts(turn.row for turn in turns)
        self._known.add(reader.digests)
        return responses


async def _remove_late_rows(table: DynamoTable, experiment_id: str) -> None:
    """Remove what was stored while its experiment was deleted."""
    while await delete_rows(table, experiment_id):
        pass
