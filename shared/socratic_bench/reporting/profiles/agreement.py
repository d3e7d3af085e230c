"""The agreement of two profiles on the same responses of an experiment."""

from __future__ import annotations

import asyncio
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.agreement.kappa import kappa_at
from socratic_bench.domain.agreement.paired_measures import concordance, limits_of_agreement
from socratic_bench.domain.agreement.rank_correlation import spearman
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.leaderboard.comparison import ModelComparison, model_comparison
from socratic_bench.reporting.profiles.choice import scored_by
from socratic_bench.reporting.profiles.grading_cost import ProfileCost, profile_cost
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__

MIDPOINT: Final = 0.5
"""The cut of kappa: a score at or above it counts as Socratic."""

MOST_POINTS: Final = 1_000
"""The most points of a plot; of more pairs every k-th is drawn."""


class Limits(BaseModel):
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

    difference: Limits | None
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


class AgreementStore(ResultStore, Responses, Protocol):
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
        pairs.add(page)
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
            if scored.profile in self._places:
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
        difference=limits and Limits(mean=limits.mean, low=limits.low, high=limits.high),
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
