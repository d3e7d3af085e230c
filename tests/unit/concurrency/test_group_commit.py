"""Many tasks commit, one execution at a time carries them out."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.concurrency.group_commit import GroupCommit
from socratic_bench.errors import GroupCommitClosed, StoreRefused, StoreUnavailable
from tests.unit.services.runner.limits.virtual_time import in_virtual_time, now
from tests.waiting import waiting_for


class Execution:
    """Squares its items; waits for the test before each batch, if the test wants it."""

    def __init__(self, *, is_held: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.begun = asyncio.Semaphore(0)
        self.go_on = asyncio.Semaphore(0 if is_held else 10_000)
        self.running = 0

    async def __call__(self, items: Sequence[int]) -> Sequence[int]:
        assert self.running == 0, "two batches at once"
        self.running += 1
        try:
            self.batches.append(list(items))
            self.begun.release()
            await self.go_on.acquire()
            if -1 in items:
                raise StoreUnavailable("not now")
            if -2 in items:
                raise StoreRefused("too large")
            return [item * item for item in items]
        finally:
            self.running -= 1


async def _begin(commit: GroupCommit[int, int], *items: int) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(commit(item)) for item in items]
    await asyncio.sleep(0)
    return tasks


async def test_each_caller_gets_the_result_of_its_own_item() -> None:
    async with GroupCommit(Execution(), max_batch=10) as commit:
        assert await asyncio.gather(*map(commit, range(25))) == [n * n for n in range(25)]


async def test_what_comes_while_a_batch_is_executed_is_the_next_batch() -> None:
    execution = Execution(is_held=True)
    async with GroupCommit(execution, max_batch=10) as commit:
        first = await _begin(commit, 1)
        await execution.begun.acquire()
        more = await _begin(commit, 2, 3, 4)
        execution.go_on.release()
        await execution.begun.acquire()
        execution.go_on.release()
        assert await asyncio.gather(*first, *more) == [1, 4, 9, 16]
    assert execution.batches == [[1], [2, 3, 4]]


async def test_a_batch_holds_no_more_than_its_maximum() -> None:
    execution = Execution()
    async with GroupCommit(execution, max_batch=3) as commit:
        await asyncio.gather(*map(commit, range(8)))
    assert execution.batches == [[0, 1, 2], [3, 4, 5], [6, 7]]


async def test_an_error_goes_to_all_of_its_batch_and_to_no_other() -> None:
    async with GroupCommit(Execution(), max_batch=2) as commit:
        results = await asyncio.gather(*map(commit, [1, -1, 2, 3]), return_exceptions=True)
    assert [type(result) for result in results[:2]] == [StoreUnavailable, StoreUnavailable]
    assert results[2:] == [4, 9]


async def test_an_item_that_is_refused_fails_alone() -> None:
    execution = Execution()
    async with GroupCommit(execution, max_batch=10) as commit:
        results = await asyncio.gather(*map(commit, (2, -2, 3)), return_exceptions=True)
    assert (results[0], type(results[1]), results[2]) == (4, StoreRefused, 9)
    assert execution.batches == [[2, -2, 3], [2], [-2], [3]]


async def test_a_caller_cancelled_as_its_error_comes_leaves_no_complaint() -> None:
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))

    async def execute(items: Sequence[int]) -> Sequence[int]:
        loop.call_soon(task.cancel)
        raise StoreUnavailable("not now")

    async with GroupCommit(execute, max_batch=1) as commit:
        task = asyncio.create_task(commit(1))
        await asyncio.wait({task})
    assert task.cancelled()
    gc.collect()
    assert complaints == []


async def test_too_few_results_are_an_error_for_the_whole_batch() -> None:
    async def execute(items: Sequence[int]) -> Sequence[int]:
        return items[1:]

    async with GroupCommit(execute, max_batch=9) as commit:
        results = await asyncio.gather(*map(commit, [1, 2]), return_exceptions=True)
    assert [type(result) for result in results] == [ValueError, ValueError]


async def test_a_caller_cancelled_before_its_batch_takes_its_item_back() -> None:
    execution = Execution(is_held=True)
    async with GroupCommit(execution, max_batch=10) as commit:
        first = await _begin(commit, 1)
        await execution.begun.acquire()
        given_up, other = await _begin(commit, 2, 3)
        given_up.cancel()
        execution.go_on.release()
        execution.go_on.release()
        assert await asyncio.gather(*first, other) == [1, 9]
    assert given_up.cancelled()
    assert execution.batches == [[1], [3]]


async def test_a_caller_cancelled_during_its_batch_does_not_harm_the_others() -> None:
    execution = Execution(is_held=True)
    async with GroupCommit(execution, max_batch=10) as commit:
        given_up, other = await _begin(commit, 1, 2)
        await execution.begun.acquire()
        given_up.cancel()
        await asyncio.wait({given_up})
        execution.go_on.release()
        assert await other == 4
    assert execution.batches == [[1, 2]]


async def test_what_is_pending_when_the_context_ends_is_still_executed() -> None:
    execution = Execution(is_held=True)
    async with GroupCommit(execution, max_batch=1) as commit:
        tasks = await _begin(commit, 1, 2, 3)
        await execution.begun.acquire()
        for _ in tasks:
            execution.go_on.release()
    assert [task.result() for task in tasks] == [1, 4, 9]


async def test_a_context_that_ends_by_an_error_ends_at_once_and_tells_the_callers() -> None:
    execution = Execution(is_held=True)
    tasks: list[asyncio.Task[int]] = []

    async def break_off() -> None:
        async with GroupCommit(execution, max_batch=1) as commit:
            tasks.extend(await _begin(commit, 1, 2))
            await execution.begun.acquire()
            raise KeyError

    with pytest.raises(KeyError):
        await break_off()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [GroupCommitClosed, GroupCommitClosed]
    assert execution.running == 0


async def test_an_end_that_is_cancelled_stops_the_execution() -> None:
    execution = Execution(is_held=True)
    commit = GroupCommit(execution, max_batch=1)
    await commit.__aenter__()
    [task] = await _begin(commit, 1)
    await execution.begun.acquire()
    ending = asyncio.create_task(commit.__aexit__(None, None, None))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait({ending, task})
    assert ending.cancelled()
    assert execution.running == 0
    assert isinstance(task.exception(), GroupCommitClosed)


async def test_it_refuses_items_outside_its_context() -> None:
    commit = GroupCommit(Execution(), max_batch=1)
    with pytest.raises(GroupCommitClosed):
        await commit(1)
    async with commit:
        pass
    with pytest.raises(GroupCommitClosed):
        await commit(1)


async def test_no_task_is_left_when_the_context_has_ended() -> None:
    before = asyncio.all_tasks()
    async with GroupCommit(Execution(), max_batch=1) as commit:
        await commit(1)
    assert asyncio.all_tasks() == before


@given(
    items=st.lists(st.integers(-1, 9), max_size=30),
    cancelled=st.sets(st.integers(0, 29)),
    max_batch=st.integers(1, 7),
)
async def test_every_caller_that_stays_gets_its_result_or_the_error_of_its_batch(
    items: list[int], cancelled: set[int], max_batch: int
) -> None:
    execution = Execution()
    async with GroupCommit(execution, max_batch=max_batch) as commit:
        tasks = [asyncio.create_task(commit(item)) for item in items]
        for position, task in enumerate(tasks):
            if position % 3 == 0:
                await asyncio.sleep(0)
            if position in cancelled:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for item, task in zip(items, tasks, strict=True):
        if task.cancelled():
            continue
        error = task.exception()
        assert task.result() == item * item if error is None else type(error) is StoreUnavailable
        assert error is not None or item != -1
    assert max(map(len, execution.batches), default=0) <= max_batch


def test_a_small_batch_is_followed_by_a_pause_in_which_the_next_one_gathers() -> None:
    execution = Execution()

    async def three_commits() -> float:
        async with GroupCommit(execution, max_batch=9, next_pause=lambda _: 20, enough=3) as commit:
            await commit(1)
            more = await _begin(commit, 2, 3)
            await asyncio.sleep(19)
            more += await _begin(commit, 4)
            await asyncio.gather(*more)
            return now()

    assert in_virtual_time(three_commits()) == 20
    assert execution.batches == [[1], [2, 3, 4]]


async def test_nothing_waits_after_a_batch_that_weighs_enough() -> None:
    execution = Execution()
    async with (
        waiting_for("the commits"),
        GroupCommit(
            execution, max_batch=9, next_pause=lambda _: 3600, enough=10, weigh=abs
        ) as commit,
    ):
        for item in (10, 11, 12):
            await commit(item)
    assert execution.batches == [[10], [11], [12]]


async def test_the_end_of_the_context_ends_a_pause() -> None:
    execution = Execution()
    async with waiting_for("the commits"):
        async with GroupCommit(
            execution, max_batch=9, next_pause=lambda _: 3600, enough=9
        ) as commit:
            await commit(1)
            pending = await _begin(commit, 2)
        assert await asyncio.gather(*pending) == [4]
