"""What was paid, as far as it is known. Unknown is never zero."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Tally
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.ports.stores.leases import Spending


def usd(nanodollars: int) -> float:
    """An amount in USD, with all the digits it has up to a million dollars."""
    return nanodollars / NANODOLLARS_PER_DOLLAR


def total(tally: Tally) -> int | None:
    """What is known of a figure, in all; None where nothing is."""
    return tally.total if tally.n else None


def total_usd(cost: Tally) -> float | None:
    """What is known to have been paid, in USD; None where nothing is."""
    return usd(cost.total) if cost.n else None


def known_share(cost: Tally, responses: int) -> float | None:
    """The share of ended `responses` whose cost is known; None before any ended.

    A failed run is one of them, and its cost is unknown: it may have been paid for.
    """
    return cost.n / responses if responses else None


class SpendingFigures(BaseModel):
    """What an experiment's calls cost so far, in USD; those of reference tutors are simulated."""

    model_config = ConfigDict(frozen=True)

    budget_usd: float | None
    """What it may cost at most; null: there is no cap."""

    spent_usd: float | None
    """What its models with a price cost; null where none has one. A call that ended without saying
    what it cost counts with the most it can have cost."""

    in_flight_usd: float | None
    """What the calls under way may cost at most, besides; null where no model has a price."""

    exhausted: bool
    """Whether calls were given up since the budget does not suffice for them."""

    @classmethod
    def of(cls, spending: Spending, *, has_prices: bool) -> SpendingFigures:
        """Of an experiment any of whose models has a price, or none."""
        return cls(
            budget_usd=None if spending.budget is None else usd(spending.budget),
            spent_usd=usd(spending.committed - spending.in_flight) if has_prices else None,
            in_flight_usd=usd(spending.in_flight) if has_prices else None,
            exhausted=spending.exhausted,
        )
