"""Consumption and cost of each model, as `/api/cost-analysis` has them. Unknown is never zero."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.cell import Tally
from socratic_bench.domain.aggregates.leaderboard import ModelRow
from socratic_bench.domain.experiment.manifest import Manifest, TutorModel
from socratic_bench.domain.experiment.outline import ExperimentOutline, ModelOutline
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.ports.stores.leases import Leases, Spending
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.cache.pools import KnownPools
from socratic_bench.results.experiment_choice import CostedStore
from socratic_bench.results.filters import EVERYTHING, Filters
from socratic_bench.results.formats import dollars
from socratic_bench.results.leaderboard.selection import select


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

    paid_usd: float | None
    """The known costs of its own calls, those of a student and a grader included; null where no
    model has a price, as the next two."""

    possibly_paid_usd: float | None
    """The most that its ended calls of unknown cost can have cost, such as failed ones."""

    in_flight_usd: float | None
    """The most that the calls in flight may add."""

    reused_usd: float
    """The known costs of the answers that it took over, which an earlier experiment paid."""

    exhausted: bool
    """Whether the runner gave up calls because the budget does not suffice."""

    told: str
    """The cost in words: paid, possibly paid, in flight and reused, and whether it is simulated."""

    @classmethod
    def in_plan(cls, spending: Spending, plan: Manifest) -> SpendingFigures:
        """Return the figures of one experiment with this plan."""
        simulated = prices_simulated(plan.models)
        return cls.of(spending, has_prices=plan.has_prices, is_simulated=simulated)

    @property
    def is_known(self) -> bool:
        """Whether there is a cost to tell."""
        return self.paid_usd is not None or self.reused_usd > 0

    @classmethod
    def of(
        cls, *spendings: Spending, has_prices: bool, is_simulated: bool = False
    ) -> SpendingFigures:
        """Add up the spending of experiments; `has_prices` says whether a model has a price, and
        `is_simulated` whether a reference tutor has one.

        Several experiments have no common budget.
        """
        paid, possibly, in_flight, reused = (
            usd(sum(amounts))
            for amounts in zip(
                (0, 0, 0, 0),
                *(
                    (each.paid, each.possibly_paid, each.in_flight, each.reused)
                    for each in spendings
                ),
                strict=True,
            )
        )
        budget = spendings[0].budget if len(spendings) == 1 else None
        return cls(
            budget_usd=None if budget is None else usd(budget),
            paid_usd=paid if has_prices else None,
            possibly_paid_usd=possibly if has_prices else None,
            in_flight_usd=in_flight if has_prices else None,
            reused_usd=reused,
            exhausted=any(each.exhausted for each in spendings),
            told=_told(paid if has_prices else None, possibly, in_flight, reused)
            + (", simulated where reference tutors have prices" if is_simulated else ""),
        )


def prices_simulated(models: Iterable[TutorModel]) -> bool:
    """Return whether a reference tutor among these models has a price."""
    return any(each.price is not None and is_reference(each) for each in models)


def _told(paid: float | None, possibly: float, in_flight: float, reused: float) -> str:
    if paid is None:
        known = "no model has a price"
    else:
        known = f"paid {dollars(paid)}"
        if possibly:
            known += f", up to {dollars(possibly)} more for calls of unknown cost"
        if in_flight:
            known += f", up to {dollars(in_flight)} more for calls in flight"
    return f"{known}; {dollars(reused)} reused" if reused else known


async def spending_figures(
    store: Leases, experiments: Iterable[ExperimentOutline]
) -> SpendingFigures:
    """Return what these experiments cost together."""
    known = {each.experiment_id: each for each in experiments}
    spendings = await store.spending_of(known)
    return SpendingFigures.of(
        *spendings.values(),
        has_prices=any(each.has_prices for each in known.values()),
        is_simulated=any(outline_simulated(each) for each in known.values()),
    )


def outline_simulated(experiment: ExperimentOutline) -> bool:
    """Return whether a reference tutor of an experiment has a price."""
    return experiment.has_prices and any(map(_model_simulated, experiment.models))


@lru_cache(maxsize=5_000)
def _model_simulated(model: ModelOutline) -> bool:
    # A list of experiments has the same models again and again, and each is JSON.
    return prices_simulated([model.model()])


class ModelCost(BaseModel):
    """Consumption and cost of one model. Money is in USD; null is unknown, never zero."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    kind: Literal["reference", "model"]
    """`reference` is a built-in archetype, no real model; its cost is simulated."""

    total_cost_usd: float | None
    """The total of the responses with a known cost, reused ones included."""

    cost_known: float | None
    """The share of ended responses with a known cost; null before one ended. Below 1 every cost
    here is a lower bound: a failed run has no known cost."""

    cost_per_run_usd: float | None
    """The total divided by the ended runs."""

    cost_per_scored_response_usd: float | None
    """The total divided by the scored responses."""

    total_runs: int
    """Runs that ended: scored, unscorable or failed."""

    responses: int
    """Responses that ended with any status, failed runs included."""

    scored_responses: int
    total_input_tokens: int | None
    """The total of the responses that the provider counted; null without such a response. The same
    holds for the totals below."""

    total_visible_output_tokens: int | None
    total_reasoning_tokens: int | None
    experiment_ids: tuple[str, ...]
    """The experiments that the figures are folded from, newest first."""


class CostAnalysis(BaseModel):
    """The costs of all models, the most expensive first; those of unknown cost last, by id."""

    model_config = ConfigDict(frozen=True)

    models: tuple[ModelCost, ...]
    total_cost_usd: float | None
    """The known total of the responses of all real models that are shown."""

    cost_known: float | None
    """The share of their ended responses with a known cost; null before one ended."""

    spending: SpendingFigures
    """What the shown experiments cost as a whole, hidden models and failed calls included."""

    profile: str


async def cost_analysis(
    store: CostedStore,
    experiment: str | None = None,
    profile: str | None = None,
    filters: Filters = EVERYTHING,
    known: KnownPools | None = None,
) -> CostAnalysis:
    """Return the costs of what belongs together, of one experiment, or of `all`.

    Selects experiments as `model_comparison` does; under another `profile` the same responses cost
    the same, and others of them may be scored. With `filters` the totals are those of what is
    shown. Raises UnknownExperiment, AmbiguousExperiment, NoScores, InvalidInput.
    """
    selected = await select(store, experiment, profile, filters, known)
    board = await asyncio.to_thread(selected.leaderboard)
    spending = await spending_figures(store, board.experiments)
    rows = [row for row in board.rows if selected.shows(row.model.id)]
    paid, responses = Tally(), 0
    for row in rows:
        if not is_reference(row.model):
            paid.merge(row.consumption.cost_nanodollars)
            responses += row.standing.responses
    return CostAnalysis(
        models=tuple(sorted(map(_model_cost, rows), key=_most_expensive_first)),
        total_cost_usd=total_usd(paid),
        cost_known=known_share(paid, responses),
        spending=spending,
        profile=board.profile,
    )


def _most_expensive_first(model: ModelCost) -> tuple[bool, float, str]:
    cost = model.total_cost_usd
    return (cost is None, -(cost or 0.0), model.model_id)


def _model_cost(row: ModelRow) -> ModelCost:
    model, standing, took = row.model, row.standing, row.consumption
    cost = took.cost_nanodollars
    paid = total_usd(cost)
    return ModelCost(
        model_id=model.id,
        model_name=model.display_name,
        kind="reference" if is_reference(model) else "model",
        total_cost_usd=paid,
        cost_known=known_share(cost, standing.responses),
        cost_per_run_usd=_per(paid, standing.runs),
        cost_per_scored_response_usd=_per(paid, standing.scored),
        total_runs=standing.runs,
        responses=standing.responses,
        scored_responses=standing.scored,
        total_input_tokens=total(took.input_tokens),
        total_visible_output_tokens=total(took.visible_output_tokens),
        total_reasoning_tokens=total(took.reasoning_tokens),
        experiment_ids=row.experiment_ids,
    )


def _per(paid: float | None, count: int) -> float | None:
    return None if paid is None or count == 0 else paid / count
