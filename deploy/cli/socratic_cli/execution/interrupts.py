"""Ends a benchmark on Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from socratic_cli.display.terminal import say
from socratic_cli.display.wait_notice import WaitNotice
from socratic_cli.embedded import Benchmark

STOPPING = "Stopping: calls in flight are finished and stored (Ctrl-C: at once)."
STOPPING_UNSTORED = (
    "Stopping: paid replies still wait for the store, for some minutes at most "
    "(Ctrl-C: at once, and they are lost)."
)


@contextmanager
def stopped_by_interrupt(benchmark: Benchmark, notice: WaitNotice) -> Iterator[None]:
    """Let the first Ctrl-C finish and store the calls in flight; the second ends at once.

    The second cancels the task in the context, which then raises KeyboardInterrupt. Python's own
    handler raises it anywhere in the event loop. The loop then loses a callback, and a task that
    waits for the callback never ends.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    interrupted = False

    def stop() -> None:
        say(STOPPING_UNSTORED if notice.waits else STOPPING)
        loop.add_signal_handler(signal.SIGINT, end)
        benchmark.stop()

    def end() -> None:
        nonlocal interrupted
        interrupted = True
        loop.remove_signal_handler(signal.SIGINT)
        if task is not None:
            task.cancel()

    try:
        loop.add_signal_handler(signal.SIGINT, stop)
        loop.add_signal_handler(signal.SIGTERM, benchmark.stop)
    except NotImplementedError:  # Windows: Ctrl-C interrupts at once there
        yield
        return
    try:
        yield
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)
