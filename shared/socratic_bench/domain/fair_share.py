"""Max-min fair shares of a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

TURN_SECONDS: Final = 30
"""The time after which indivisible parts go to other owners."""


class Share(NamedTuple):
    """An owner's parts of a limit: those it has, and those it can use."""

    parts: int
    wants: int
    until: int
    """The time at which the owner loses them, in microseconds on the store's clock."""


def after_claim(
    shares: Mapping[str, Share], total: int, owner: str, wants: int, now: int, until: int
) -> tuple[int, dict[str, Share]]:
    """Return the parts that an owner gets of a limit until a time, and the shares of all owners.

    Shares whose time is over are gone, and so is that of an owner without parts and wishes.
    """
    others = {name: each for name, each in shares.items() if name != owner and each.until >= now}
    parts = _part_of(total, owner, wants, others, now / 1_000_000)
    own = {owner: Share(parts, wants, until)} if parts or wants else {}
    return parts, others | own


def _part_of(
    total: int, owner: str, wants: int, others: Mapping[str, Share], seconds: float
) -> int:
    """Return the parts of a limit for one owner: its fair share, or the rest that others left.

    `others` are the live shares of other owners, who give back what is too much at their own next
    claim.
    """
    wanted = {name: share.wants for name, share in others.items()}
    turn = int(seconds // TURN_SECONDS)
    fair = fair_shares(total, {**wanted, owner: wants}, turn)[owner]
    left = total - sum(share.parts for share in others.values())
    return max(0, min(fair, left))


def fair_shares(total: int, wants: Mapping[str, int], turn: int = 0) -> dict[str, int]:
    """Divide `total` parts max-min fairly; no claimant gets more than it wants.

    A claimant that wants less than an equal share gets all it wants, and the others share the rest.
    Indivisible parts go to the claimants in turn: another `turn`, such as the number of the current
    half minute, favours others. The shares sum up to `total`, or to the sum of the wants if that is
    less. (Bertsekas and Gallager, "Data Networks", 1992, 6.5.2.)
    """
    shares: dict[str, int] = {}
    waiting = sorted(name for name, wanted in wants.items() if wanted > 0)
    left = total
    while waiting:
        equal = left // len(waiting)
        content = [name for name in waiting if wants[name] <= equal]
        if not content:
            break
        for name in content:
            shares[name] = wants[name]
            left -= wants[name]
        waiting = [name for name in waiting if name not in shares]
    if waiting:
        equal, over = divmod(left, len(waiting))
        for place, name in enumerate(waiting):
            extra = (place - turn) % len(waiting) < over
            shares[name] = equal + extra
    return {name: shares.get(name, 0) for name in wants}
