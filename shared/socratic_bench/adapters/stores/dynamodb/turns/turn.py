"""One turn of a run: its calls, the leases of those calls, and its response."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from socratic_bench.adapters.stores.dynamodb.table import keys
from socratic_bench.adapters.stores.dynamodb.table.items import VERSION, Item, Value, at, unpacked
from socratic_bench.ports.stores.responses import TurnKey


@dataclass(slots=True)
class Turn:
    """A turn as the store has it, or an empty one."""

    experiment_id: str
    key: TurnKey
    calls: int = 0
    owner: str = ""
    leased_until: int | None = None
    """Microseconds since 1970-01-01 UTC; None: no lease is open."""

    reserved: int = 0
    lease_id: str = ""
    lapsed: dict[str, int] = field(default_factory=dict)
    """The reservations of leases that were taken over, by lease id."""

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

    def reserved_under(self, lease_id: str) -> int | None:
        """Return the reservation of an open lease of this turn; None for an ended lease."""
        if not lease_id:
            return None
        return self.reserved if lease_id == self.lease_id else self.lapsed.get(lease_id)

    def end(self, lease_id: str) -> None:
        """End an open lease."""
        if lease_id == self.lease_id:
            self.lease_id, self.owner, self.leased_until, self.reserved = "", "", None, 0
        else:
            del self.lapsed[lease_id]
        self.is_changed = True

    def lease(self, lease_id: str, owner: str, until: int, reserve: int) -> None:
        """Begin a lease; the reservation of an open one stays."""
        if self.lease_id:
            self.lapsed[self.lease_id] = self.reserved
        self.calls += 1
        self.lease_id, self.owner, self.leased_until, self.reserved = (
            lease_id,
            owner,
            until,
            reserve,
        )
        self.is_changed = True

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
        attributes: dict[str, Value | None] = {
            "experiment": self.experiment_id,
            "calls": self.calls or None,
            "owner": self.owner or None,
            "until": self.leased_until,
            "reserved": self.reserved or None,
            "lease": self.lease_id or None,
            "lapsed": json.dumps(self.lapsed) if self.lapsed else None,
            "record": self.record,
            "body": self.body or None,
            "profile": self.profile or None,
            "is_last": self.is_last or None,
        }
        return at(keys.turn(*self.key), attributes)


def turn_of_item(key: TurnKey, item: Item) -> Turn:
    until = item.get("until")
    return Turn(
        experiment_id=str(item["experiment"]),
        key=key,
        calls=int(item.get("calls", 0)),
        owner=str(item.get("owner", "")),
        leased_until=None if until is None else int(until),
        reserved=int(item.get("reserved", 0)),
        lease_id=str(item.get("lease", "")),
        lapsed=json.loads(str(item.get("lapsed", "{}"))),
        record=item.get("record"),
        body=str(item.get("body", "")),
        profile=str(item.get("profile", "")),
        is_last=bool(item.get("is_last", False)),
        version=int(item[VERSION]),
    )
