"""The parts of shared limits, inside one transaction.

The row of a limit is the lock on its shares, those of silent owners included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy import delete, select

from socratic_bench.adapters.stores.sql.batches import chunks
from socratic_bench.adapters.stores.sql.dialect import Dialect
from socratic_bench.adapters.stores.sql.schema import LIMITS, SHARES
from socratic_bench.adapters.stores.sql.transactions import Transaction
from socratic_bench.domain.fair_share import Share, part_of
from socratic_bench.ports.stores.limits import ShareClaim

MICROSECONDS = 1_000_000


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


class ShareKey(NamedTuple):
    """The key of a share."""

    scope: str
    owner: str


class Sharing:
    """The claims of one owner, for one writing transaction."""

    def __init__(self, transaction: Transaction, statements: ShareStatements, owner: str) -> None:
        self._transaction = transaction
        self._statements = statements
        self._owner = owner
        self._shares: dict[ShareKey, Share] = {}
        self._gone: list[ShareKey] = []

    async def claim(self, claims: Sequence[ShareClaim], now: int, until: int) -> dict[str, int]:
        """Do the work of `SharedLimits.share`. Times are in microseconds, by the store's clock."""
        of_scopes = {claim.scope: claim for claim in claims}
        await self._take(of_scopes, now)
        granted: dict[str, int] = {}
        for scope, claim in of_scopes.items():
            parts = granted[scope] = self._part(claim, now / MICROSECONDS)
            own = ShareKey(scope, self._owner)
            if parts or claim.wants:
                self._shares[own] = Share(parts, claim.wants)
            elif self._shares.pop(own, None):
                self._gone.append(own)
        await self._write(until)
        return granted

    async def _take(self, claims: Mapping[str, ShareClaim], now: int) -> None:
        """Lock these limits in the order of their names, and read their shares."""
        limits = [{"scope": scope, "total": claims[scope].total} for scope in sorted(claims)]
        await self._transaction.execute(self._statements.take_limits, self._statements.rows(limits))
        for chunk in chunks(claims):
            rows = await self._transaction.execute(self._statements.shares, {"scopes": chunk})
            for scope, owner, parts, wants, held_until in rows:
                key = ShareKey(scope, owner)
                if held_until < now and owner != self._owner:
                    self._gone.append(key)
                else:
                    self._shares[key] = Share(parts, wants)

    def _part(self, claim: ShareClaim, seconds: float) -> int:
        others = {
            key.owner: share
            for key, share in self._shares.items()
            if key.scope == claim.scope and key.owner != self._owner
        }
        return part_of(claim.total, self._owner, claim.wants, others, seconds)

    async def _write(self, until: int) -> None:
        own = [
            {**key._asdict(), **share._asdict(), "held_until": until}
            for key, share in sorted(self._shares.items())
            if key.owner == self._owner
        ]
        if own:
            await self._transaction.execute(
                self._statements.write_shares, self._statements.rows(own)
            )
        for chunk in chunks(self._gone):
            keys = self._statements.keys_of_shares(chunk)
            await self._transaction.execute(self._statements.delete_shares, keys)
