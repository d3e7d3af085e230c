"""Keeping the pauses of models for all who call them, inside one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from socratic_bench.adapters.sql.batched import Lookups, Writes, chunks
from socratic_bench.adapters.sql.transactions import Transaction
from socratic_bench.domain.pause import NONE, Pause, PauseNews, after
from socratic_bench.ports.store import PauseAnswer

MICROSECONDS: Final = 1_000_000


class Pausing:
    """What several runners tell of models, for one transaction.

    A row is the lock on its pause; whoever only looks takes none.
    """

    def __init__(self, transaction: Transaction, lookups: Lookups, writes: Writes) -> None:
        self._transaction = transaction
        self._lookups = lookups
        self._writes = writes

    async def look(self, news: Sequence[PauseNews], now: int) -> dict[str, PauseAnswer]:
        """The pauses as they are. `now` is in microseconds, by the clock of the store."""
        found = {each.scope: NONE for each in news}
        for chunk in chunks(found):
            rows = await self._transaction.execute(self._lookups.pauses, {"scopes": chunk})
            found |= {row[0]: _pause(row) for row in rows}
        seconds = now / MICROSECONDS
        answers: dict[str, PauseAnswer] = {}
        for each in news:
            pause, may_call = after(found[each.scope], each, seconds)
            answers[each.scope] = PauseAnswer(pause.at(seconds), may_call)
        return answers

    async def take(self, news: Sequence[PauseNews], now: int) -> dict[str, PauseAnswer]:
        """The pauses after this news."""
        of_scopes = {each.scope: each for each in news}
        # In the order of their names, so that nobody waits for somebody who waits for them.
        new = [_row(scope, NONE) for scope in sorted(of_scopes)]
        found = await self._transaction.execute(self._writes.take_pauses, self._writes.rows(new))
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
            await self._transaction.execute(self._writes.write_pauses, self._writes.rows(changed))
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
