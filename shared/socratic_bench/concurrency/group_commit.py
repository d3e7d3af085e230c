"""Group commit: many tasks each commit one item, and one execution at a time commits them all.

While a batch is being executed the next one gathers, so that batches are as large as the load
makes them and a lone item waits for nothing. Where a batch costs about the same whatever its size,
a pause after small ones has more gather.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from socratic_bench.concurrency.deadlines import wait_at_most
from socratic_bench.errors import GroupCommitClosed, StoreUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")


class GroupCommit(Generic[Item, Result]):
    """`result = await commit(item)`: in batches of at most `max_batch`, one after the other.

    The next batch begins `pause` seconds after the one before, unless that weighed `enough`, by the
    sum of what `weigh` says of its items; the first begins at once, and so does the last.

    `execute` takes the items of a batch and returns as many results, in the same order. A batch for
    which it raises is executed again item by item, so that a bad item fails alone; StoreUnavailable
    goes to every caller of the batch at once. The next batch is executed all the same.

    It works while its context is open. When the context ends, what is pending is still executed;
    when it ends by an exception, it is not, and its callers get GroupCommitClosed.
    """

    def __init__(
        self,
        execute: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        max_batch: int,
        pause: float = 0.0,
        enough: int = 1,
        weigh: Callable[[Item], int] = lambda _: 1,
    ) -> None:
        self._execute = execute
        self._max_batch = max_batch
        self._pause = pause
        self._enough = enough
        self._weigh = weigh
        self._pending: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._woken = asyncio.Event()
        self._closing = asyncio.Event()
        self._flusher: asyncio.Task[None] | None = None
        self._is_open = False

    async def __call__(self, item: Item) -> Result:
        """The result for `item`, once the batch it belongs to was executed.

        A caller that is cancelled before that batch begins takes its item back; one that is
        cancelled later does not. Raises what `execute` raised, or GroupCommitClosed.
        """
        return await self.begin(item)

    def begin(self, item: Item) -> asyncio.Future[Result]:
        """The result that `item` will have; cancelled in time, it takes the item back."""
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

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
                # D-011: the running transaction is the timer: a lone item waits for nothing.
                if batch := self._take():
                    begun = asyncio.get_running_loop().time()
                    await self._execute_batch(batch)
                    if sum(self._weigh(item) for item, _ in batch) < self._enough:
                        await self._rest(begun + self._pause)
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
