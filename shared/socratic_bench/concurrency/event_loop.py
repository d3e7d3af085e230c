"""An event loop that takes the events of its sockets one at a time.

asyncio's own loop begins the work of all sockets that are ready, and goes on with each of them in
turn: of 100 replies that come together, the first is read to its end just before the last. Calls
that follow them are then sent together, and so are their replies: the convoy stays, and each call
waits for all others. One at a time, the first reply is read to its end, and the next call sent,
while the others wait for their turn: the calls come apart within a few rounds.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of `work`, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(OneAtATime())) as runner:
        return runner.run(work)


class OneAtATime(selectors.DefaultSelector):
    """Finds all ready files, and returns one at a time until it looks again."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[int, int] = {}
        """Events that were found and not returned yet, by file descriptor, the first one last."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._found:
            found = super().select(timeout)
            self._found.update((key.fd, events) for key, events in reversed(found))
        while self._found:
            descriptor, events = self._found.popitem()
            key = self.get_key(descriptor)
            if wanted := events & key.events:
                return [(key, wanted)]
        return []

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        """Forget a file, and its events: the next file may get its descriptor."""
        key = super().unregister(fileobj)
        self._found.pop(key.fd, None)
        return key
