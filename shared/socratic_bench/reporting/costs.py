"""Known costs. Unknown is never zero."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Tally
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.ports.stores.leases import Spending


def usd(nanodollars: int) -> float:
    """Return an amount in USD, exact up to a million dollars."""
    return nanodollars / NANODOLLARS_PER_DOLLAR


def total(tally: Tally) -> int | None:
    """Return the sum of the known values; None without one."""
    return tally.total if tally.n else None


def total_usd(cost: Tally) -> float | None:
    """Return the known cost in USD; None without a known one."""
    return usd(cost.total) if cost.n else None


def known_share(cost: Tally, responses: int) -> float | None:
    """Return the share of ended `responses` with a known cost; None before a response ended.

    A failed run counts as a response of unknown cost: its calls may be billed.
    """
    return cost.n / responses if responses else None


class SpendingFigures(BaseModel):
    """The cost of an experiment's calls so far, in USD; reference tutors' costs are simulated."""

    model_config = ConfigDict(frozen=True)

    budget_usd: float | None
    """The budget; null: no cap."""

    spent_usd: float | None
    """The cost of its models with a price; null without such a model. A call of unknown cost counts
    with the most that it can have cost."""

    in_flight_usd: float | None
    """The most that the calls in flight may add; null where no model has a price."""

    exhausted: bool
    """Whether the runner gave up calls because the budget does not suffice."""

    @classmethod
    def of(cls, spending: Spending, *, has_prices: bool) -> SpendingFigures:
        """Convert the store's spending; `has_prices` says whether a model has a price."""
        return cls(
            budget_usd=None if spending.budget is None else usd(spending.budget),
            spent_usd=usd(spending.committed - spending.in_flight) if has_prices else None,
            in_flight_usd=usd(spending.in_flight) if has_prices else None,
            exhausted=spending.exhausted,
        )
