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


def part_of(total: int, owner: str, wants: int, others: Mapping[str, Share], seconds: float) -> int:
    """Return the parts of a limit for one owner: its fair share, or the rest that others left.

    `others` are the live shares of other owners, who give back what is too much at their own next
    claim. `seconds` is the time of the store's clock.
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
