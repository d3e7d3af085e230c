"""The pause between batches: short for an idle process, the longest for a busy one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.concurrency.retry_policy import BUSY, REST, SHORTEST, AdaptivePause

LONGEST = 0.05

seconds = st.floats(min_value=0, max_value=1e6)


class Machine:
    """A clock, and the processor time that a process uses of it."""

    def __init__(self):
        self.now = self.used = 0.0

    def pause(self, longest=LONGEST):
        return AdaptivePause(longest, processor_time=lambda: self.used, clock=lambda: self.now)

    def passes(self, elapsed, used):
        self.now += elapsed
        self.used += used


def test_a_process_that_uses_little_processor_time_pauses_shortly():
    machine = Machine()
    pause = machine.pause()
    machine.passes(0.02, 0.0001)
    assert pause.next(lasted=0.001) == SHORTEST


def test_the_pause_grows_with_the_processor_time_of_the_work():
    machine = Machine()
    pause = machine.pause()
    machine.passes(0.02, 0.004)
    assert pause.next(lasted=0.001) == pytest.approx(REST * 0.004)
    machine.passes(0.04, 0.008)
    assert pause.next(lasted=0.001) == pytest.approx(REST * 0.008)


@pytest.mark.parametrize("share", [BUSY, 0.5, 1.0])
def test_a_busy_process_pauses_longest(share):
    machine = Machine()
    pause = machine.pause()
    machine.passes(0.02, 0.02 * share)
    assert pause.next(lasted=0.001) == LONGEST


def test_a_process_with_a_core_for_itself_is_busy_later():
    machine = Machine()
    pause = AdaptivePause(
        LONGEST, busy=0.8, processor_time=lambda: machine.used, clock=lambda: machine.now
    )
    machine.passes(0.02, 0.01)
    assert pause.next(lasted=0.001) == pytest.approx(REST * 0.01)
    machine.passes(0.02, 0.016)
    assert pause.next(lasted=0.001) == LONGEST


def test_a_process_that_gets_no_processor_pauses_as_long_as_its_batch_took():
    machine = Machine()
    pause = machine.pause()
    machine.passes(0.1, 0.001)
    assert pause.next(lasted=0.03) == 0.03
    machine.passes(0.1, 0.001)
    assert pause.next(lasted=0.3) == LONGEST


def test_an_hour_without_messages_makes_no_long_pause():
    machine = Machine()
    pause = machine.pause()
    machine.passes(3600, 36)
    assert pause.next(lasted=0.001) == SHORTEST


@given(longest=st.floats(min_value=0, max_value=10), elapsed=seconds, share=seconds, lasted=seconds)
def test_no_pause_is_longer_than_the_longest_or_negative(longest, elapsed, share, lasted):
    machine = Machine()
    pause = machine.pause(longest)
    machine.passes(elapsed, elapsed * share)
    assert 0 <= pause.next(lasted) <= longest


def test_a_pause_of_zero_stays_zero():
    machine = Machine()
    pause = machine.pause(longest=0.0)
    machine.passes(1, 1)
    assert pause.next(lasted=1.0) == 0.0
