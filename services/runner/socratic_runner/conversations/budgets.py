"""Finds out whether a call that exceeds its experiment's budget now may fit later."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

import structlog

from socratic_bench.ports.stores.leases import Leases, Spending
from socratic_runner.last_uses import MOST_EXPERIMENTS, LastUses

log = structlog.get_logger(__name__)

FRESH = 0.25
"""Seconds for which one query of the spending serves all callers."""


@dataclass(slots=True)
class _Experiment:
    """The known spending of one experiment."""

    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    spending: Spending | None = None
    seen_at: float = 0.0


class Budgets:
    """Separates calls that may get money later from calls that cannot."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._experiments: defaultdict[str, _Experiment] = defaultdict(_Experiment)
        self._uses = LastUses[str](MOST_EXPERIMENTS)

    async def room_may_come(self, experiment_id: str, reserve: int) -> bool:
        """Return whether a call that may cost `reserve` nanodollars may fit into the budget later.

        Calls in flight return money if they cost less than they reserved. Without calls in flight
        no money returns: the budget is then marked as exhausted.
        """
        if self._uses.look_is_due:
            for idle in self._uses.take_idle():
                self._experiments.pop(idle, None)
        self._uses.note(experiment_id)
        experiment = self._experiments[experiment_id]
        async with experiment.looking:
            # Spending only grows, so a query of a moment ago is as good as a new one.
            now = asyncio.get_running_loop().time()
            spending = experiment.spending
            if spending is None or now - experiment.seen_at > FRESH:
                spending = await self._leases.spending(experiment_id)
                experiment.spending, experiment.seen_at = spending, now
            if spending.budget is None or spending.in_flight:
                return True
            if spending.committed + reserve <= spending.budget:
                return True
            if not spending.exhausted:
                await self._leases.exhaust(experiment_id, reserve)
                experiment.spending = None
                log.info("budget exhausted", correlation_id=experiment_id)
            return False
