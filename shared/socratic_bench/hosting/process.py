"""A service as a process: settings, logs, the event loop, and the exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog

from socratic_bench.errors import InvalidSettings, SocraticBenchError
from socratic_bench.hosting.failures import first_cause
from socratic_bench.hosting.garbage import quiet_garbage_collector
from socratic_bench.hosting.logs import configure_logs, without_passwords
from socratic_bench.hosting.signals import stop_signals
from socratic_bench.service_settings import ProcessSettings, load_settings

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
