"""Reports a benchmark's waits for its store."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from socratic_cli.display.terminal import say
from socratic_cli.embedded import Benchmark


class WaitNotice:
    """Reports each kind of trouble once, and the end of the wait once."""

    def __init__(self) -> None:
        self._told: set[type[Exception]] = set()

    @property
    def waits(self) -> bool:
        """True while the last report was a trouble."""
        return bool(self._told)

    def update(self, error: Exception | None) -> None:
        """Report the present trouble; None ends the wait."""
        if error is None:
            if self._told:
                say("Going on: the store has the waiting replies.")
            self._told.clear()
        elif type(error) not in self._told:
            self._told.add(type(error))
            say(
                f"Waiting: {error}. The benchmark keeps paid replies and continues by itself as "
                "soon as the store takes them. Ctrl-C stops it."
            )


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
