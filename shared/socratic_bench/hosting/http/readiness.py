"""The readiness of a process, and the problem that prevents it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import structlog

from socratic_bench.concurrency.deadlines import within
from socratic_bench.errors import SocraticBenchError

log = structlog.get_logger(__name__)

CHECK_DEADLINE: Final = 3.0
"""Seconds that the broker and the store may each take to answer a check."""

Check = Callable[[], Awaitable[object]]


class Readiness:
    """Starting, then ready while all dependencies answer, then draining."""

    def __init__(self, checks: Mapping[str, Check], *, deadline: float = CHECK_DEADLINE) -> None:
        """`checks` ask each dependency, by its name, for an answer."""
        self._checks = checks
        self._deadline = deadline
        self._told: tuple[str, str] | None = None
        """The dependencies that did not answer the last check, with the reason."""
        self._state: Literal["starting", "started", "draining"] = "starting"

    def start(self) -> None:
        """From now on, the checks decide."""
        self._state = "started"

    def drain(self) -> None:
        """From now on, the process is not ready."""
        self._state = "draining"

    async def problem(self) -> str | None:
        """Return the reason why the process is not ready, or None.

        The log alone has the details of a broker's or a store's problem: they may name hosts.
        """
        if self._state != "started":
            return f"the service is {self._state}"
        for name, check in self._checks.items():
            try:
                await within(self._deadline, check())
            except (SocraticBenchError, TimeoutError) as error:
                self._tell(name, str(error) or "no answer in time")
                return f"the {name} does not answer"
        self._told = None
        return None

    def _tell(self, missing: str, reason: str) -> None:
        """Log each problem once: an orchestrator asks every few seconds."""
        level = logging.DEBUG if (missing, reason) == self._told else logging.WARNING
        self._told = missing, reason
        log.log(level, "not ready", missing=missing, reason=reason)
