"""The abilities of an API besides reading, which depend on the place where it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from socratic_api.http.problems import Conflict
from socratic_bench.ports.broker import Broker

_NO_BROKER: Final = (
    "this API has no broker, so it cannot reach the services: give it theirs with "
    "SOCRATIC_BROKER_URL, or use the command, `socratic-bench {command}`"
)
_ONLY_READS: Final = "this API only reads: use the command, `socratic-bench {command}`"


Prepare = Callable[[], Awaitable[None]]
"""Brings the schema of the store up to date: a process that reads may have left it as it was."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of one API."""

    broker: Broker | None = None
    """The broker of the services; None without one."""

    scoring_broker: Broker | None = None
    """A broker in this process that has responses scored here; None: the services do it."""

    may_write: bool = True
    """False where the API has no right to write into the store."""

    may_stream: bool = True
    """False where an answer has to be whole, as a function's."""

    outlives_answers: bool = True
    """False where work stands still after the answer, as in a function."""

    most_runs: int = 1_000_000
    """The most runs of an experiment that is submitted here."""

    def require_writing(self, command: str) -> None:
        """Raise Conflict, which names the command to use, if this API may not write."""
        if not self.may_write:
            raise Conflict(_ONLY_READS.format(command=command))

    def require_broker(self, command: str) -> Broker:
        """Return the broker. Raises Conflict, which names the command to use, without one."""
        if self.broker is None:
            raise Conflict(_NO_BROKER.format(command=command))
        return self.broker

    def require_scoring(self, command: str) -> Broker:
        """Return the broker whose responses are scored. Raises Conflict as `require_broker`."""
        return self.scoring_broker or self.require_broker(command)
