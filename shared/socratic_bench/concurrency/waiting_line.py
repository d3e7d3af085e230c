"""Tasks that wait for a change, woken in the order of their arrival."""

from __future__ import annotations

import asyncio
from collections import OrderedDict


class WaitingLine:
    """A line of waiting tasks. One that is cancelled after it was woken wakes the next."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: OrderedDict[asyncio.Future[None], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places)

    async def wait(self) -> None:
        """Wait until woken. The awaited change may be undone by then: check again."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._places[place] = None
        try:
            await place
        except asyncio.CancelledError:
            if place in self._places:
                del self._places[place]
            else:
                self.wake_one()
            raise

    def wake_one(self) -> None:
        """Wake the first in line, if there is one."""
        while self._places:
            place, _ = self._places.popitem(last=False)
            if not place.done():
                place.set_result(None)
                return

    def wake_all(self) -> None:
        """Wake all tasks in line."""
        while self._places:
            self.wake_one()
