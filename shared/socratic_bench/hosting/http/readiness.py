"""Whether a process can do its work, and if not, why."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal

import structlog

from socratic_bench.concurrency.deadlines import within
from socratic_bench.errors import SocraticBenchError

log = structlog.get_logger(__name__)

CHECK_DEADLINE: Final = 3.0
"""Seconds that the broker and the store may each take to answer that they are there."""

Check = Callable[[], Awaitable[object]]


class Readiness:
    """Starting, then ready while everything it needs answers, then draining."""

    def __init__(self, checks: Mapping[str, Check], *, deadline: float = CHECK_DEADLINE) -> None:
        """`checks` ask each thing the process needs, by its name, whether it is there."""
        self._checks = checks
        self._deadline = deadline
        self._told: tuple[str, str] | None = None
        """What was missing when it was last asked, and why."""
        self._state: Literal["starting", "started", "draining"] = "starting"

    def start(self) -> None:
        """From now on it depends on the checks."""
        self._state = "started"

    def drain(self) -> None:
        """From now on it is not ready any more."""
        self._state = "draining"

    async def problem(self) -> str | None:
        """Why it is not ready; None if it is.

        What exactly is wrong with a broker or a store is for the log: it may name hosts.
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
        """Once: an orchestrator asks every few seconds."""
        level = logging.DEBUG if (missing, reason) == self._told else logging.WARNING
        self._told = missing, reason
        log.log(level, "not ready", missing=missing, reason=reason)
