"""The role of the store that runners share limits and pauses of models through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from socratic_bench.domain.pause import Pause, PauseNews


class ShareClaim(NamedTuple):
    """A request for a part of a limit that several runners share."""

    scope: str
    """The name of the limit: the same for every runner that shares it."""

    total: int
    """How many parts there are."""

    wants: int
    """How many of them the owner has a use for; 0 gives all back."""


class PauseAnswer(NamedTuple):
    """How a model is paused, as the store has it."""

    pause: Pause
    """Its times are seconds from the answer on."""

    may_call: bool
    """Whether the asking runner may make a call now: one, or any number where no pause is left."""


class SharedLimits(Protocol):
    """Divides limits among runners, and passes on when a model refuses calls."""

    async def share(
        self, claims: Sequence[ShareClaim], owner: str, seconds: float
    ) -> Mapping[str, int]:
        """Take parts of shared limits for so long; returns how many of each scope are `owner`'s.

        They replace the parts that `owner` had of these scopes. The parts of all owners whose time
        has not run out never sum up to more than the total, whatever each wants: an owner that
        comes late waits until the others, at their next claims, have come down to their fair shares
        (see `domain.fair_share`). An owner claims again well before the time is over, by the
        store's clock.

        Each scope is decided atomically, with the shares of all its owners; scopes are independent
        of each other.
        """
        ...

    async def pauses(self, news: Sequence[PauseNews]) -> Mapping[str, PauseAnswer]:
        """Tell of push-backs and replies of models, and learn how each is paused, by its scope.

        `domain.pause.after` says what follows from news, by the store's clock; each scope stands
        once in it. Of several runners that want to make the one call that may be made, one may.

        Each scope is read and changed atomically; scopes are independent of each other.
        """
        ...
