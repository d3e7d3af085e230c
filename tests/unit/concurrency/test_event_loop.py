"""The event loop that takes the events of its sockets one at a time."""

import asyncio
import selectors
import socket
from contextlib import ExitStack

import pytest

from socratic_bench.concurrency import event_loop
from socratic_bench.concurrency.event_loop import OneAtATime

MANY = 40
STEPS = 3
"""Turns of the loop from the first byte of an answer to its end."""


@pytest.fixture
def pairs():
    with ExitStack() as opened:
        made = [socket.socketpair() for _ in range(MANY)]
        for each in (end for pair in made for end in pair):
            opened.callback(each.close)
            each.setblocking(False)
        yield made


@pytest.fixture
def selector(pairs):
    with OneAtATime() as made:
        for near, _ in pairs:
            made.register(near, selectors.EVENT_READ)
        yield made


def test_every_ready_file_is_returned_once_before_the_selector_looks_again(selector, pairs):
    for _, far in pairs:
        far.send(b"!")
    rounds = [selector.select(0) for _ in range(MANY)]
    assert {len(each) for each in rounds} == {1}
    found = [key.fileobj for each in rounds for key, _ in each]
    assert set(found) == {near for near, _ in pairs}
    assert len(selector.select(0)) == 1  # all can still be read


def test_an_event_dies_with_the_registration_of_its_file(selector, pairs):
    for _, far in pairs:
        far.send(b"!")
    returned = {key.fd for key, _ in selector.select(0)}
    left = [near for near, _ in pairs if near.fileno() not in returned]
    for near in left:
        selector.unregister(near)
        selector.register(near, selectors.EVENT_WRITE)
    rounds = [selector.select(0) for _ in range(MANY)]
    again = [events for each in rounds for key, events in each if key.fileobj in left]
    assert set(again) == {selectors.EVENT_WRITE}


def test_a_file_that_is_no_longer_waited_for_is_not_returned(selector, pairs):
    for _, far in pairs:
        far.send(b"!")
    returned = {key.fd for key, _ in selector.select(0)}
    left = [near for near, _ in pairs if near.fileno() not in returned]
    for near in left:
        selector.modify(near, selectors.EVENT_WRITE)
    assert selector.select(0) == []


@pytest.mark.parametrize(
    ("run", "fewest", "most"), [(event_loop.run, 1, STEPS), (asyncio.run, MANY // 2, MANY)]
)
def test_the_first_of_many_answers_is_at_its_end_while_most_have_not_begun(
    pairs, run, fewest, most
):
    """So that its next call does not leave together with those of all others."""
    begun, ended = [], []

    async def take(number, near):
        await asyncio.get_running_loop().sock_recv(near, 1)
        begun.append(number)
        for _ in range(STEPS):
            await asyncio.sleep(0)
        ended.append((number, len(begun)))

    async def take_all():
        async with asyncio.TaskGroup() as tasks:
            for number, (near, _) in enumerate(pairs):
                tasks.create_task(take(number, near))
            await asyncio.sleep(0)
            for _, far in pairs:
                far.send(b"!")

    run(take_all())
    assert len(ended) == MANY
    _, begun_before = ended[0]
    assert fewest <= begun_before <= most


def test_the_result_and_the_error_of_the_work_come_back():
    async def work(error=None):
        if error:
            raise error
        return 7

    assert event_loop.run(work()) == 7
    with pytest.raises(ZeroDivisionError):
        event_loop.run(work(ZeroDivisionError()))
