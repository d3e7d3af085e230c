"""The agreement of two profiles on the same responses, and what their gradings cost."""

from __future__ import annotations

import asyncio
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.grading import grading_run_id
from socratic_bench.domain.run import Run
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.research.agreement_measures import (
    concordance,
    kappa_at,
    limits_of_agreement,
    spearman,
)
from socratic_bench.results.costs import usd
from socratic_bench.results.experiment_choice import (
    CostedStore,
    find_experiment,
    scored_by,
    scores_under,
)
from socratic_bench.results.formats import dollars
from socratic_bench.results.leaderboard.leaderboard import ModelComparison, model_comparison
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__

RUNS_AT_ONCE = 500
"""Runs whose responses are read together."""


class ProfileCost(BaseModel):
    """The calls of models that a profile's scores took. A formula takes none."""

    model_config = ConfigDict(frozen=True)

    calls: int
    """Replies of the grader, one for each distinct text; those of failed calls are not kept."""

    total_cost_usd: float | None
    """The price of these replies, of adopted ones too; null where no price is known."""

    mean_latency_ms: float | None


NO_CALLS = ProfileCost(calls=0, total_cost_usd=0.0, mean_latency_ms=None)


async def profile_cost(store: Responses, experiment: Experiment, profile: str) -> ProfileCost:
    """Return what the scores of a profile cost, from the stored replies of the grader."""
    manifest = experiment.manifest
    if manifest.use_llm_exploratory is None or profile != manifest.profile:
        return NO_CALLS
    known: set[str] = set()
    costs, latencies = array("q"), array("q")
    for run_ids in _batches(experiment.runs()):
        answered = await store.responses(run_ids)
        texts = {response.text for responses in answered.values() for response in responses}
        names = {grading_run_id(experiment.experiment_id, text) for text in texts} - known
        for name, replies in (await store.responses(names)).items():
            known.add(name)
            costs.extend(
                each.cost_nanodollars for each in replies[:1] if each.cost_nanodollars is not None
            )
            latencies.extend(each.latency_ms or 0 for each in replies[:1] if each.latency_ms)
    return ProfileCost(
        calls=len(known),
        total_cost_usd=usd(sum(costs)) if costs else None,
        mean_latency_ms=sum(latencies) / len(latencies) if latencies else None,
    )


def _batches(runs: Iterator[Run]) -> Iterator[set[str]]:
    while batch := {run.run_id for run in islice(runs, RUNS_AT_ONCE)}:
        yield batch


def cost_sentence(profile: str, cost: ProfileCost) -> str:
    """Say what a profile cost, in a sentence."""
    if not cost.calls:
        return f"{profile} calls no model and costs nothing."
    known = cost.total_cost_usd
    price = "their price is unknown" if known is None else f"{dollars(known)} in all"
    latency = "" if cost.mean_latency_ms is None else f", {cost.mean_latency_ms / 1000:.1f} s each"
    gradings = "1 grading" if cost.calls == 1 else f"{cost.calls:,} gradings"
    return f"{profile} took {gradings} by a model: {price}{latency}."


MIDPOINT: Final = 0.5
"""The cut of kappa: a score at or above it counts as Socratic."""

MOST_POINTS: Final = 1_000
"""The most points of a plot; of more pairs every k-th is drawn."""


class DifferenceLimits(BaseModel):
    """The differences of a figure, first profile less second."""

    model_config = ConfigDict(frozen=True)

    mean: float
    low: float
    """The lower of the 95 % limits of agreement: mean less 1.96 standard deviations."""

    high: float


class FigureAgreement(BaseModel):
    """The agreement of both profiles on one figure. A statistic is null where none is defined."""

    model_config = ConfigDict(frozen=True)

    name: str
    """`overall`, or a vector that both profiles measure."""

    pairs: int
    """Responses with the figure under both profiles."""

    first_mean: float | None
    second_mean: float | None
    spearman: float | None
    """Rank correlation: 1.0 where both put the responses in the same order."""

    concordance: float | None
    """Lin's: 1.0 where both give the same scores."""

    kappa: float | None
    """Cohen's, of scores at or above 0.50: agreement beyond chance."""

    difference: DifferenceLimits | None
    points: tuple[tuple[float, float], ...]
    """(first, second) of the pairs, or of every k-th of many."""


class ModelPlace(BaseModel):
    """A model under both profiles."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    first_overall: float | None
    second_overall: float | None
    first_rank: int | None
    second_rank: int | None
    first_ranks: tuple[int, int] | None
    """The best and the worst rank that the model may have; null where nobody compared it."""

    second_ranks: tuple[int, int] | None
    changes: bool
    """Whether the two ranges of ranks have no rank in common: more than chance explains."""


class ProfileAgreement(BaseModel):
    """How far two profiles agree on the same responses."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    title: str | None
    first: str
    second: str
    responses: int
    """Responses that both profiles scored."""

    only_first: int
    """Responses that only the first profile scored."""

    only_second: int
    figures: tuple[FigureAgreement, ...]
    """`overall` first, then vectors that both profiles measure."""

    models: tuple[ModelPlace, ...]
    """In the order of the first profile."""

    first_cost: ProfileCost
    second_cost: ProfileCost
    version: str = __version__


class AgreementStore(CostedStore, Responses, Protocol):
    """The roles of the store for scores, and for the gradings that they took."""


async def profile_agreement(
    store: AgreementStore, wanted: str, first: str, second: str
) -> ProfileAgreement:
    """Compare two profiles on the scored responses of an experiment, `wanted` as `find_experiment`.

    Reads every stored score, batch by batch. Raises UnknownExperiment, AmbiguousExperiment,
    NoScores, and InvalidInput for a profile compared with itself.
    """
    if first == second:
        raise InvalidInput(f"{first} is compared with itself: name two profiles")
    experiment = await find_experiment(store, wanted)
    for profile in (first, second):
        await scored_by(store, [experiment.experiment_id], profile)
    pairs = _Pairs(first, second)
    async for page in store.score_rows(experiment.experiment_id):
        for profile in (first, second):
            pairs.add(scores_under(page, profile))
    boards = [
        await model_comparison(store, experiment.experiment_id, each) for each in (first, second)
    ]
    return ProfileAgreement(
        experiment_id=experiment.experiment_id,
        title=experiment.manifest.name or experiment.occasion,
        first=first,
        second=second,
        responses=len(pairs.figures[OVERALL][0]),
        only_first=pairs.unmatched(first),
        only_second=pairs.unmatched(second),
        figures=await asyncio.to_thread(_figures, pairs.figures),
        models=tuple(_places(*boards)),
        first_cost=await profile_cost(store, experiment, first),
        second_cost=await profile_cost(store, experiment, second),
    )


_Values = tuple["array[float]", "array[float]"]


class _Pairs:
    """The scores of both profiles, response by response, in any order of arrival."""

    def __init__(self, first: str, second: str) -> None:
        self._places = {first: 0, second: 1}
        self._waiting: dict[tuple[str, int], ScoredResponse] = {}
        """The responses with a score by one of the profiles so far."""

        self._unscored = [0, 0]
        self.figures: defaultdict[str, _Values] = defaultdict(lambda: (array("d"), array("d")))
        """The figures that both profiles gave a response, by their names."""

    def add(self, scores: Sequence[ScoredResponse]) -> None:
        for scored in scores:
            key = scored.run.run_id, scored.turn
            if (other := self._waiting.pop(key, None)) is None:
                self._waiting[key] = scored
            else:
                self._pair(*sorted((scored, other), key=self._place))

    def unmatched(self, profile: str) -> int:
        """Return how many responses only this profile scored."""
        return self._unscored[self._places[profile]] + sum(
            each.profile == profile and each.overall is not None for each in self._waiting.values()
        )

    def _place(self, scored: ScoredResponse) -> int:
        return self._places[scored.profile]

    def _pair(self, one: ScoredResponse, other: ScoredResponse) -> None:
        if one.overall is None or other.overall is None:
            self._unscored[0] += one.overall is not None
            self._unscored[1] += other.overall is not None
            return
        vectors, others = one.vectors or {}, other.vectors or {}
        both = {name: (vectors[name], others[name]) for name in vectors if name in others}
        for name, (a, b) in {OVERALL: (one.overall, other.overall), **both}.items():
            if a is not None and b is not None:
                values = self.figures[name]
                values[0].append(a)
                values[1].append(b)


def _figures(figures: Mapping[str, _Values]) -> tuple[FigureAgreement, ...]:
    names = (OVERALL, *(name for name in figures if name != OVERALL))
    return tuple(_figure(name, *figures[name]) for name in names if name in figures)


def _figure(name: str, one: Sequence[float], other: Sequence[float]) -> FigureAgreement:
    limits = limits_of_agreement(one, other)
    classes = [int(each >= MIDPOINT) for each in other]
    step = max(1, -(-len(one) // MOST_POINTS))
    return FigureAgreement(
        name=name,
        pairs=len(one),
        first_mean=sum(one) / len(one) if one else None,
        second_mean=sum(other) / len(other) if other else None,
        spearman=spearman(one, other),
        concordance=concordance(one, other),
        kappa=kappa_at(MIDPOINT, one, classes),
        difference=limits and DifferenceLimits(mean=limits.mean, low=limits.low, high=limits.high),
        points=tuple(zip(one[::step], other[::step], strict=True)),
    )


def _places(first: ModelComparison, second: ModelComparison) -> list[ModelPlace]:
    others = {model.model_id: model for model in second.models}
    places = []
    for model in first.models:
        other = others[model.model_id]
        ranges = model.rank_interval, other.rank_interval
        places.append(
            ModelPlace(
                model_id=model.model_id,
                model_name=model.model_name,
                first_overall=model.overall_score,
                second_overall=other.overall_score,
                first_rank=model.rank,
                second_rank=other.rank,
                first_ranks=ranges[0],
                second_ranks=ranges[1],
                changes=_are_apart(*ranges),
            )
        )
    return places


def _are_apart(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    return one is not None and other is not None and (one[1] < other[0] or other[1] < one[0])
