"""A provider's batch: many calls in one file, answered within a day at half the price.

The batch owns the leases of its turns, so they last without a process. The name of that owner is
all that a runner has to know to find the batch again.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

PREFIX: Final = "batch/"
"""The beginning of the names of batches as owners of leases; no process has a slash in its name."""

LEASE_SECONDS: Final = 30 * 24 * 3600.0
"""The lease of a turn in a batch, in seconds: providers keep results for 29 days or more."""

_TIME: Final = "%Y%m%dT%H%M%SZ"


class ProviderBatch(NamedTuple):
    """One batch of a model's calls."""

    model_id: str
    begun_at: datetime
    """When its turns were leased, to the second, in UTC."""

    mark: str
    """Random characters."""

    @classmethod
    def new(cls, model_id: str, now: datetime) -> ProviderBatch:
        """Return a batch that begins now."""
        return cls(model_id, now.astimezone(UTC).replace(microsecond=0), secrets.token_hex(5))

    @classmethod
    def of_owner(cls, owner: str) -> ProviderBatch:
        """Return the batch that owns a lease. Raises ValueError for another owner."""
        model_id, _, name = owner.removeprefix(PREFIX).rpartition("/")
        begun_at, _, mark = name.partition("-")
        return cls(model_id, datetime.strptime(begun_at, _TIME).replace(tzinfo=UTC), mark)

    @property
    def name(self) -> str:
        """Its name at the provider, of letters, digits and a hyphen."""
        return f"{self.begun_at:{_TIME}}-{self.mark}"

    @property
    def owner(self) -> str:
        """Its name as the owner of leases."""
        return f"{PREFIX}{self.model_id}/{self.name}"

    def entry(self, number: int) -> str:
        """The name of one of its calls, at the provider and as a lease."""
        return f"{self.name}-{number}"


def is_batch(owner: str) -> bool:
    """Whether the owner of a lease is a batch, and no process."""
    return owner.startswith(PREFIX)


def waiting_sentences(owners: Iterable[str]) -> list[str]:
    """Return a sentence for each batch, oldest first, from the owner of each waiting turn."""
    counts = {ProviderBatch.of_owner(owner): count for owner, count in Counter(owners).items()}
    return [
        f"{each.model_id}: {'1 turn waits' if count == 1 else f'{count} turns wait'} in batch "
        f"{each.name} since {each.begun_at:%Y-%m-%d %H:%M} UTC"
        for each, count in sorted(counts.items(), key=lambda item: item[0].begun_at)
    ]
