"""The account of an experiment: its state, its money and its calls."""

from __future__ import annotations

from dataclasses import dataclass

from socratic_bench.adapters.stores.dynamodb.table.items import Item
from socratic_bench.domain.experiment.state import ExperimentState


@dataclass(frozen=True, slots=True)
class Account:
    """An account as it was read. Every claim of a lease and every settled cost changes it."""

    state: ExperimentState | None = None
    """None: the experiment is not registered, and no money is counted."""

    profile: str | None = None
    budget: int | None = None
    committed: int = 0
    exhausted: bool = False
    calls: int = 0
    turns: int = 0
    """Turns with at least one call."""

    @property
    def is_registered(self) -> bool:
        return self.state is not None

    @property
    def is_deleted(self) -> bool:
        return self.state is ExperimentState.DELETED

    @property
    def may_call(self) -> bool:
        return self.state is None or self.state.calls_may_begin


def account_of_item(item: Item | None) -> Account:
    if item is None:
        return Account()
    state, profile, budget = item.get("state"), item.get("profile"), item.get("budget")
    return Account(
        state=None if state is None else ExperimentState(str(state)),
        profile=None if profile is None else str(profile),
        budget=None if budget is None else int(budget),
        committed=int(item.get("committed", 0)),
        exhausted=bool(item.get("exhausted", False)),
        calls=int(item.get("calls", 0)),
        turns=int(item.get("turns", 0)),
    )
