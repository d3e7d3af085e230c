"""The store role through which runners share limits and pauses of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from socratic_bench.domain.pause import Pause, PauseNews


class ShareClaim(NamedTuple):
    """A request for a part of a limit that several runners share."""

    scope: str
    """The name of the limit, which all runners that share it use."""

    total: int
    """The number of parts in all."""

    wants: int
    """The number of parts that the owner can use; 0 gives all back."""


class PauseAnswer(NamedTuple):
    """The store's answer about the pause of a model."""

    pause: Pause
    """The pause; its times are seconds from the answer on."""

    may_call: bool
    """Whether the asking runner may make a call now: one, or any number without a pause."""


class SharedLimits(Protocol):
    """Divides limits among runners, and shares the pauses of models that refuse calls."""

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        """Take parts of shared limits for a time; returns `owner`'s number of parts of each scope.

        They replace `owner`'s previous parts of these scopes. The valid parts of all owners never
        sum up to more than the total: a late owner waits until the others, at their next claims,
        have come down to their fair shares (see `domain.fair_share`). An owner claims again well
        before the time is over, by the store's clock.

        The store decides each scope atomically, with the shares of all its owners; scopes are
        independent of each other.
        """
        ...

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        """Report push-backs and replies of models; returns the pause of each scope.

        The store applies `domain.pause.after` by its own clock; `news` has each scope once. Of
        several runners that want the one allowed call, one gets it.

        The store reads and changes each scope atomically; scopes are independent of each other.
        """
        ...
