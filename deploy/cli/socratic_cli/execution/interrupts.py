"""How Ctrl-C ends a benchmark."""

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
    "Stopping: replies that were paid for still wait for the store, for some minutes at most "
    "(Ctrl-C: at once, and they are lost)."
)


@contextmanager
def stopped_by_interrupt(benchmark: Benchmark, notice: WaitNotice) -> Iterator[None]:
    """The first Ctrl-C finishes what is in flight and stores it; the second ends at once.

    The second cancels the task that is in the context, which raises KeyboardInterrupt then.
    Python's own handler raises it wherever the loop happens to be. The loop then loses the
    callback that it was about to call, and a task that waits for that callback never ends.
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
