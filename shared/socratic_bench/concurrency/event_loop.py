"""An event loop that takes few events of its sockets at a time.

asyncio's own loop begins the work of all sockets that are ready, and goes on with each of them in
turn: of 100 replies that come together, the first is read to its end just before the last. Calls
that follow them are then sent together, and so are their replies: the convoy stays, and each call
waits for all others. With few at a time the first reply is read to its end, and the next call sent,
while the others wait for their turn: the calls come apart within a few rounds.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

AT_ONCE: Final = 4
"""Sockets whose events the loop takes at a time."""

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of `work`, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(work)


class FewAtOnce(selectors.DefaultSelector):
    """Finds all ready files, and returns AT_ONCE of them at a time until it looks again."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[int, int] = {}
        """The events that were found and not returned yet, by file descriptor."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._found:
            self._found.update((key.fd, events) for key, events in super().select(timeout))
        ready = []
        for descriptor in list(islice(self._found, AT_ONCE)):
            events = self._found.pop(descriptor)
            key = self.get_key(descriptor)
            if wanted := events & key.events:
                ready.append((key, wanted))
        return ready

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        """Forget a file, and its events: the next file may get its descriptor."""
        key = super().unregister(fileobj)
        self._found.pop(key.fd, None)
        return key


def _new_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(FewAtOnce())
