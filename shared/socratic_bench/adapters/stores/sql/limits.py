"""The role `SharedLimits` of the SQL store: parts of limits, and pauses of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy import delete, select

from socratic_bench.adapters.stores.sql.database import Database
from socratic_bench.adapters.stores.sql.dialect import Dialect, chunks
from socratic_bench.adapters.stores.sql.role import Now, SqlRole
from socratic_bench.adapters.stores.sql.schema import LIMITS, PAUSES, SHARES
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.fair_share import Share, after_claim
from socratic_bench.domain.leasing import SECOND
from socratic_bench.domain.pause import NONE, Pause, PauseNews, after
from socratic_bench.ports.stores.limits import PauseAnswer, ShareClaim


class PauseStatements:
    """Statements about pauses, made for a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.rows = dialect.rows
        self.pauses = select(PAUSES).where(dialect.among(PAUSES.c.scope, "scopes"))

        # An update without changes locks and returns an existing row.
        pause = dialect.insert(PAUSES)
        self.take_pauses = pause.on_conflict_do_update(
            index_elements=list(PAUSES.primary_key), set_={"number": PAUSES.c.number}
        ).returning(*PAUSES.columns)
        self.write_pauses = pause.on_conflict_do_update(
            index_elements=list(PAUSES.primary_key),
            set_={
                each.name: pause.excluded[each.name]
                for each in PAUSES.columns
                if not each.primary_key
            },
        )


class PauseBatch:
    """The news of several models, for one transaction.

    A row is the lock on its pause; a reader takes no lock.
    """

    def __init__(self, transaction: Transaction, statements: PauseStatements) -> None:
        self._transaction = transaction
        self._statements = statements

    async def look(self, news: Sequence[PauseNews], now: int) -> dict[str, PauseAnswer]:
        """Read the present pauses. `now` is in microseconds, by the clock of the store."""
        found = {each.scope: NONE for each in news}
        for chunk in chunks(found):
            rows = await self._transaction.execute(self._statements.pauses, {"scopes": chunk})
            found |= {row[0]: _pause(row) for row in rows}
        seconds = now / SECOND
        answers: dict[str, PauseAnswer] = {}
        for each in news:
            pause, may_call = after(found[each.scope], each, seconds)
            answers[each.scope] = PauseAnswer(pause.at(seconds), may_call)
        return answers

    async def take(self, news: Sequence[PauseNews], now: int) -> dict[str, PauseAnswer]:
        """Apply the news; returns the pauses after it."""
        of_scopes = {each.scope: each for each in news}
        # In the order of their names, so that no two transactions deadlock.
        new = [_row(scope, NONE) for scope in sorted(of_scopes)]
        found = await self._transaction.execute(
            self._statements.take_pauses, self._statements.rows(new)
        )
        seconds = now / SECOND
        answers: dict[str, PauseAnswer] = {}
        changed: list[dict[str, Any]] = []
        for row in found:
            before = _pause(row)
            pause, may_call = after(before, of_scopes[row[0]], seconds)
            answers[row[0]] = PauseAnswer(pause.at(seconds), may_call)
            if pause != before:
                changed.append(_row(row[0], pause))
        if changed:
            await self._transaction.execute(
                self._statements.write_pauses, self._statements.rows(changed)
            )
        return answers


def _pause(row: Sequence[Any]) -> Pause:
    _, number, in_a_row, *times, kind, reason = row
    until, next_call, gap = (each / SECOND for each in times)
    return Pause(number, in_a_row, until, next_call, gap, kind, reason)


def _row(scope: str, pause: Pause) -> dict[str, Any]:
    return {
        "scope": scope,
        "number": pause.number,
        "in_a_row": pause.in_a_row,
        "paused_until": round(pause.until * SECOND),
        "next_call": round(pause.next_call * SECOND),
        "gap": round(pause.gap * SECOND),
        "kind": pause.kind,
        "reason": pause.reason,
    }


class ShareStatements:
    """Statements about limits and their shares, made for a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.rows = dialect.rows

        limit = dialect.insert(LIMITS)
        self.take_limits = limit.on_conflict_do_update(
            index_elements=list(LIMITS.primary_key), set_={"total": limit.excluded.total}
        )
        share = dialect.insert(SHARES)
        self.write_shares = share.on_conflict_do_update(
            index_elements=list(SHARES.primary_key),
            set_={
                "parts": share.excluded.parts,
                "wants": share.excluded.wants,
                "held_until": share.excluded.held_until,
            },
        )

        self.shares = select(SHARES).where(dialect.among(SHARES.c.scope, "scopes"))
        share_key = list(SHARES.primary_key.columns)
        self.keys_of_shares = partial(dialect.keys, share_key)
        self.delete_shares = delete(SHARES).where(dialect.keyed(share_key))


class Sharing:
    """The claims of one owner, for one writing transaction.

    The row of a limit is the lock on its shares, those of silent owners included.
    """

    def __init__(self, transaction: Transaction, statements: ShareStatements, owner: str) -> None:
        self._transaction = transaction
        self._statements = statements
        self._owner = owner

    async def claim(self, claims: Sequence[ShareClaim], now: int, until: int) -> dict[str, int]:
        """Do the work of `SharedLimits.share`. Times are in microseconds, by the store's clock."""
        of_scopes = {claim.scope: claim for claim in claims}
        present = await self._take(of_scopes)
        granted: dict[str, int] = {}
        own: list[dict[str, Any]] = []
        gone: list[tuple[str, str]] = []
        for scope, total, wants in of_scopes.values():
            held = present[scope]
            granted[scope], left = after_claim(held, total, self._owner, wants, now, until)
            gone += [(scope, name) for name in held.keys() - left.keys()]
            if share := left.get(self._owner):
                own.append(_row_of_share(scope, self._owner, share))
        await self._write(own, gone)
        return granted

    async def _take(self, claims: Mapping[str, ShareClaim]) -> dict[str, dict[str, Share]]:
        """Lock these limits in the order of their names, and read their shares."""
        limits = [{"scope": scope, "total": claims[scope].total} for scope in sorted(claims)]
        await self._transaction.execute(self._statements.take_limits, self._statements.rows(limits))
        shares: dict[str, dict[str, Share]] = {scope: {} for scope in claims}
        for chunk in chunks(claims):
            rows = await self._transaction.execute(self._statements.shares, {"scopes": chunk})
            for scope, owner, *share in rows:
                shares[scope][owner] = Share(*share)
        return shares

    async def _write(self, own: list[dict[str, Any]], gone: list[tuple[str, str]]) -> None:
        if own:
            rows = sorted(own, key=lambda row: str(row["scope"]))
            await self._transaction.execute(
                self._statements.write_shares, self._statements.rows(rows)
            )
        for chunk in chunks(gone):
            keys = self._statements.keys_of_shares(chunk)
            await self._transaction.execute(self._statements.delete_shares, keys)


def _row_of_share(scope: str, owner: str, share: Share) -> dict[str, Any]:
    return {
        "scope": scope,
        "owner": owner,
        "parts": share.parts,
        "wants": share.wants,
        "held_until": share.until,
    }


class SqlSharedLimits(SqlRole):
    """Divides shared limits, and keeps the pauses of models."""

    def __init__(self, database: Database, now: Now | None = None) -> None:
        super().__init__(database, now)
        self._of_pauses = PauseStatements(database.dialect)
        self._of_shares = ShareStatements(database.dialect)

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        if not claims:
            return {}
        async with self._database.write() as transaction:
            now = await self._clock.now(transaction)
            sharing = Sharing(transaction, self._of_shares, owner)
            return await sharing.claim(claims, now, now + round(seconds * SECOND))

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        told = [each for each in news if each.replied or each.pushed_back or each.wants_call]
        looked_at = [each for each in news if each not in told]
        answers: dict[str, PauseAnswer] = {}
        if told:
            async with self._database.write() as transaction:
                pausing = PauseBatch(transaction, self._of_pauses)
                answers |= await pausing.take(told, await self._clock.now(transaction))
        if looked_at:
            async with self._database.read() as transaction:
                pausing = PauseBatch(transaction, self._of_pauses)
                answers |= await pausing.look(looked_at, await self._clock.now(transaction))
        return answers
