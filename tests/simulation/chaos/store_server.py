"""The store as a server: the store in memory behind wires, which can be away, full or slow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.errors import StoreNotWritable, StoreUnavailable
from socratic_bench.ports.stores.store import Store
from tests.simulation.chaos.network import Wire

WRITES: Final = frozenset(
    (
        *("register", "complete", "mark_planned", "change_state", "pin", "delete_rows"),
        *("record", "record_failures", "fold"),
        *("take_leases", "give_back_leases", "end_calls", "exhaust"),
        *("heartbeat", "leave", "leave_others", "share", "pauses"),
    )
)

HANDLERS_ASK: Final = frozenset({"fold", "recorded_failures"})
"""What a handler alone asks, for the messages of a batch."""


class StoreServer:
    """One store for all processes, and its state of health."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.away = 0
        """Faults in force under which no request is done."""

        self.read_only: list[str] = []
        """The reasons for which it takes no writes at present."""

        self.loses_answers = 0
        """Faults in force under which requests are done and their answers are lost."""

        self.cut_off: dict[str, int] = {}
        """Faults in force, by the process that cannot reach the store."""

        self.strange_errors = 0
        """So many requests of handlers fail in a way that nobody expects."""

        self.on_write: Callable[[str], None] = lambda _: None
        """Hears of each write, after it."""

    async def do(self, process: str, name: str, method: Callable[[], Awaitable[Any]]) -> Any:
        """Serve one request."""
        if self.away or self.cut_off.get(process):
            raise StoreUnavailable("simulated: no connection to the store")
        writes = name in WRITES
        if writes and self.read_only:
            raise StoreNotWritable(f"simulated: the store is {self.read_only[0]}")
        if self.strange_errors and name in HANDLERS_ASK:
            self.strange_errors -= 1
            raise RuntimeError("simulated: a bug")
        result = await method()
        if writes:
            self.on_write(name)
        if self.loses_answers:
            raise StoreUnavailable("simulated: the connection ended before the answer came")
        return result


class StorePort:
    """The store as one process sees it."""

    def __init__(self, server: StoreServer, process: str, wire: Wire) -> None:
        self._server = server
        self._process = process
        self.wire = wire

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._server.store, name)
        server, process, wire = self._server, self._process, self.wire

        async def ask(*arguments: Any, **named: Any) -> Any:
            return await wire.ask(
                name, lambda: server.do(process, name, lambda: method(*arguments, **named))
            )

        setattr(self, name, ask)
        return ask

    def as_store(self) -> Store:
        return cast("Store", self)
