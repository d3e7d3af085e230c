"""Sharing a limit out fairly among those who want parts of it."""

from __future__ import annotations

from collections.abc import Mapping


def fair_shares(total: int, wants: Mapping[str, int], turn: int = 0) -> dict[str, int]:
    """How many of `total` parts each gets: max-min fair, nobody more than they want.

    Whoever wants less than an equal share gets all of it, and what they leave is shared by the
    others. Parts that cannot be divided go to those whose turn it is: with another `turn`, such
    as the number of the current half minute, others have it. The shares sum up to `total`, or to
    all that is wanted if that is less. (Bertsekas and Gallager, "Data Networks", 1992, 6.5.2.)
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
