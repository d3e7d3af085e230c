"""Which calls share a gate: those that count towards the same limits of an account."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from socratic_bench.domain.manifest import TutorModel
from socratic_bench.providers.registry import account_scope
from socratic_runner.limits.gate import Gate
from socratic_runner.limits.pausing import USUAL, BackOff


class Gates:
    """The gates of this process, one for each scope."""

    def __init__(
        self,
        *,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        back_off: BackOff = USUAL,
    ) -> None:
        """`most` calls to one model are in flight at most, whatever its ceilings are. `clock` gives
        seconds that never go back. `back_off` says how long a model is paused that pushed back.
        """
        self._most = most
        self._clock = clock
        self._back_off = back_off
        self._gates: dict[str, Gate] = {}
        self._on_waiting: Callable[[], None] | None = None
        self._on_pause_news: Callable[[], None] | None = None
        self._is_closed = False

    def gate_for(self, model: TutorModel, client_concurrency: int | None) -> Gate:
        """The gate before `model`, with the ceilings that `model` has now.

        `client_concurrency` is what its client can have in flight; None: as many as one likes. It
        holds for this process alone, so that it is no part of what is shared with others.
        """
        scope = account_scope(model)
        gate = self._gates.get(scope)
        if gate is None:
            gate = self._gates[scope] = self._new_gate()
        limits = model.limits
        gate.set_most(min(self._most, client_concurrency or self._most))
        gate.set_ceilings(
            concurrency=limits.concurrency,
            requests_per_minute=limits.requests_per_minute,
            tokens_per_minute=limits.tokens_per_minute,
        )
        return gate

    def share_out(self, on_waiting: Callable[[], None]) -> None:
        """From now on a gate has nothing of its ceilings before `set_share` gives it something.

        To be called before there is any gate. `on_waiting` is called whenever somebody comes to
        wait before a gate where nobody did.
        """
        self._on_waiting = on_waiting

    def share_pauses(self, on_news: Callable[[], None]) -> None:
        """From now on a store keeps the pauses of models, and lets nobody call one before it said
        how that is paused.

        To be called before there is any gate. `on_news` is called when there is something to tell.
        """
        self._on_pause_news = on_news

    def close(self) -> None:
        """Close every gate, those that are still to come included."""
        self._is_closed = True
        for gate in self._gates.values():
            gate.close()

    def __iter__(self) -> Iterator[tuple[str, Gate]]:
        """The scopes and their gates."""
        return iter(self._gates.items())

    def _new_gate(self) -> Gate:
        gate = Gate(
            most=self._most,
            clock=self._clock,
            on_waiting=self._on_waiting,
            back_off=self._back_off,
        )
        if self._on_pause_news is not None:
            gate.pausing.share(self._on_pause_news)
        if self._on_waiting is not None:
            gate.set_share(0, 1)
        if self._is_closed:
            gate.close()
        return gate
