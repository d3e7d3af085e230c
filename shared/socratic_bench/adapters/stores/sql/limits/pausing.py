"""The shared pauses of models, inside one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import select

from socratic_bench.adapters.stores.sql.batches import chunks
from socratic_bench.adapters.stores.sql.dialect import Dialect
from socratic_bench.adapters.stores.sql.schema import PAUSES
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.pause import NONE, Pause, PauseNews, after
from socratic_bench.ports.stores.limits import PauseAnswer

MICROSECONDS: Final = 1_000_000


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


class Pausing:
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
        seconds = now / MICROSECONDS
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
        seconds = now / MICROSECONDS
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
    until, next_call, gap = (each / MICROSECONDS for each in times)
    return Pause(number, in_a_row, until, next_call, gap, kind, reason)


def _row(scope: str, pause: Pause) -> dict[str, Any]:
    return {
        "scope": scope,
        "number": pause.number,
        "in_a_row": pause.in_a_row,
        "paused_until": round(pause.until * MICROSECONDS),
        "next_call": round(pause.next_call * MICROSECONDS),
        "gap": round(pause.gap * MICROSECONDS),
        "kind": pause.kind,
        "reason": pause.reason,
    }
