"""Group commit: many tasks each commit one item, and one execution at a time commits them all.

The next batch gathers while one executes, so the load decides the size of batches, and a lone item
does not wait. If a batch costs about the same for any size, a pause after small batches lets more
items gather.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Self, TypeVar

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.errors import GroupCommitClosed, StoreUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")


class GroupCommit(Generic[Item, Result]):
    """`result = await commit(item)`: executes items in batches of at most `max_batch`, in turn.

    A batch begins a pause after the begin of the one before, unless the items of that one weighed
    `enough` by `weigh`; the first and the last batch begin at once. `next_pause` gets the seconds
    that the batch took and returns those of the pause.

    `execute` takes the items of a batch and returns as many results, in the same order. If it
    raises, each item is executed again alone, so that a bad item fails alone; StoreUnavailable goes
    to every caller of the batch at once. The next batch executes in any case.

    Callers commit while the context is open. Pending items still execute when the context ends; if
    an exception ends it, their callers get GroupCommitClosed instead.
    """

    def __init__(
        self,
        execute: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        max_batch: int,
        next_pause: Callable[[float], float] = lambda _: 0.0,
        enough: int = 1,
        weigh: Callable[[Item], int] = lambda _: 1,
    ) -> None:
        self._execute = execute
        self._max_batch = max_batch
        self._next_pause = next_pause
        self._enough = enough
        self._weigh = weigh
        self._pending: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._woken = asyncio.Event()
        self._closing = asyncio.Event()
        self._flusher: asyncio.Task[None] | None = None
        self._is_open = False

    async def __call__(self, item: Item) -> Result:
        """Return the result for `item` once its batch was executed.

        A cancellation before the batch begins withdraws the item; a later one does not. Raises the
        error of `execute`, or GroupCommitClosed.
        """
        return await self.begin(item)

    def begin(self, item: Item) -> asyncio.Future[Result]:
        """Return a future of the result; cancelling it in time withdraws the item."""
        if not self._is_open:
            raise GroupCommitClosed(
                "nothing can be committed outside the context of the group commit; "
                "commit before it ends"
            )
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pending.append((item, future))
        self._woken.set()
        return future

    async def __aenter__(self) -> Self:
        self._is_open = True
        self._flusher = asyncio.create_task(self._flush(), name="group commit")
        return self

    async def __aexit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._is_open = False
        self._closing.set()
        self._woken.set()
        if self._flusher is None:
            return
        if error_type is None:
            await self._flusher
        else:
            self._flusher.cancel()
            await asyncio.wait({self._flusher})

    async def _flush(self) -> None:
        try:
            while self._pending or self._is_open:
                # D-011: the running transaction is the timer: a lone item does not wait.
                if batch := self._take():
                    clock = asyncio.get_running_loop().time
                    begun = clock()
                    await self._execute_batch(batch)
                    pause = self._next_pause(clock() - begun)
                    if sum(self._weigh(item) for item, _ in batch) < self._enough:
                        await self._rest(begun + pause)
                elif self._is_open:
                    self._woken.clear()
                    await self._woken.wait()
        finally:
            self._is_open = False
            _fail(self._pending, GroupCommitClosed("closed before this item was executed"))

    async def _rest(self, until: float) -> None:
        await wait_at_most(until - asyncio.get_running_loop().time(), self._closing)

    def _take(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        while self._pending and len(batch) < self._max_batch:
            item, future = self._pending.popleft()
            if not future.done():
                batch.append((item, future))
        return batch

    async def _execute_batch(self, batch: Sequence[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._execute([item for item, _ in batch])
            paired = list(zip(batch, results, strict=True))
        except StoreUnavailable as error:
            _fail(batch, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the callers
            await self._after_failure(batch, error)
        except BaseException:
            _fail(batch, GroupCommitClosed("closed while this item was being executed"))
            raise
        else:
            for (_, future), result in paired:
                if not future.done():
                    future.set_result(result)

    async def _after_failure(
        self, batch: Sequence[tuple[Item, asyncio.Future[Result]]], error: Exception
    ) -> None:
        if len(batch) == 1:
            _fail(batch, error)
            return
        for one in batch:
            await self._execute_batch([one])


def _fail(batch: Sequence[tuple[Item, asyncio.Future[Result]]], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
