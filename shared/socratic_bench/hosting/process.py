"""A service as a process: settings, logs, the event loop, and the exit code.

Reference counts free events, rows and tasks. The collector finds next to nothing in them, yet
searches all of them every 700 new objects: a third of the pipeline's time.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar

import structlog

from socratic_bench.errors import InvalidSettings, SocraticBenchError
from socratic_bench.hosting.logs import configure_logs, without_passwords
from socratic_bench.hosting.starting import first_cause
from socratic_bench.service_settings import ProcessSettings, load_settings

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def hang_up() -> tuple[signal.Signals, ...]:
    """Return the signal of a lost terminal, unless this process ignores it, as under `nohup`."""
    if not hasattr(signal, "SIGHUP") or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return ()
    return (signal.SIGHUP,)


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Yield an event that the first SIGINT, SIGTERM or SIGHUP sets; the second ends the process at
    once.

    Requires a running event loop. Only the main thread gets signals: elsewhere the event stays
    unset.
    """
    stop = asyncio.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            # A second orderly end could hang too.
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        asked = True
        loop.call_soon_threadsafe(stop.set)

    before = {number: signal.signal(number, on_signal) for number in (*STOP_SIGNALS, *hang_up())}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


THRESHOLDS = (50_000, 20, 100)
"""New objects before a search of the youngest generation, and the intervals of the older ones."""

_open: list[tuple[int, int, int]] = []
"""The thresholds before each open context; the first are the caller's own."""


@contextmanager
def quiet_garbage_collector() -> Iterator[None]:
    """Collect rarely, and skip existing objects, until the context ends.

    Several contexts may overlap in any order: the last to end restores the state before the first.
    """
    _open.append(gc.get_threshold())
    # Without a search first: it takes 50 ms of a start, and finds next to nothing.
    gc.freeze()
    # D-167: rarely and not off: cycles are still found.
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        # An early end takes a later entry: the first entry stays for the last end.
        before = _open.pop()
        if not _open:
            gc.set_threshold(*before)
            gc.unfreeze()


log = structlog.get_logger(__name__)

STOPPED: Final = 0
"""The process stopped on request."""

BROKEN: Final = 1
"""The process could not start, or broke for good."""

WRONG_SETTINGS: Final = 2

S = TypeVar("S", bound=ProcessSettings)


def run_process(
    name: str,
    settings_type: type[S],
    serve: Callable[[S, asyncio.Event], Awaitable[None]],
    *,
    run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run,
) -> int:
    """Run `serve` with the settings and a stop event; returns the exit code.

    `run` runs a coroutine on a new event loop, as `asyncio.run` does. Standard error gets a
    sentence on wrong settings, and the log all else.
    """
    try:
        settings = load_settings(settings_type)
        configure_logs(settings.log_level, name)
        run(_serve(serve, settings))
    except InvalidSettings as error:
        return _wrong_settings(name, error)
    except Exception as error:
        cause = first_cause(error)
        if isinstance(cause, InvalidSettings):
            return _wrong_settings(name, cause)
        if isinstance(cause, SocraticBenchError):
            log.critical("ended", reason=str(cause))
        else:
            log.critical("ended by a bug", exc_info=error)
        return BROKEN
    log.info("stopped")
    return STOPPED


async def _serve(serve: Callable[[S, asyncio.Event], Awaitable[None]], settings: S) -> None:
    with stop_signals() as stop, quiet_garbage_collector():
        await serve(settings, stop)


def _wrong_settings(name: str, error: InvalidSettings) -> int:
    sys.stderr.write(f"{name}: {without_passwords(str(error))}\n")
    return WRONG_SETTINGS
