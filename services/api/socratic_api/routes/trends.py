"""Scores over time: `/api/latest-rankings`, `/weekly` and `/api/timeseries`."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.routes.query import (
    DIMENSION,
    EXPERIMENT,
    FILTERS,
    PROBLEMS,
    PROFILE,
    SINCE,
    TIMES,
    UNTIL,
    Results,
    asked_key,
    chosen_filters,
    chosen_name,
    chosen_profile,
    chosen_results,
    chosen_time,
    whole_number,
)
from socratic_api.routes.runs import MODEL
from socratic_bench.errors import InvalidInput, UnknownExperiment
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.results.cache.pools import KnownPools
from socratic_bench.results.cache.scores import KnownScores
from socratic_bench.results.experiment_choice import CostedStore
from socratic_bench.results.fidelity.fidelity import FIDELITY
from socratic_bench.results.filters import written_time
from socratic_bench.results.leaderboard.figures import ModelFigures
from socratic_bench.results.leaderboard.leaderboard import ModelComparison, model_comparison
from socratic_bench.results.trends.figures import TURNS_KEPT
from socratic_bench.results.trends.timeseries import TimelineStore, Timeseries, timeseries
from socratic_bench.scoring.profile import OVERALL

_WEEK: Final = re.compile(r"[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])")
_WEEKS_LISTED: Final = 520
"""The most weeks that an answer lists: ten years."""


class RankedModel(BaseModel):
    """One model of a ranking."""

    model_config = ConfigDict(frozen=True)

    rank: int | None
    """The place by the score; null without a score."""

    rank_interval: tuple[int, int] | None
    """The ranks that the model may have; models that share ranks may differ by chance alone."""

    model_id: str
    model_name: str
    kind: Literal["reference", "model", "baseline"]
    overall_score: float | None
    """From 0.0 to 1.0; null without a scored run."""

    confidence_interval: tuple[float, float] | None
    coverage: float | None
    """The share of ended responses with a score."""

    total_runs: int

    @classmethod
    def of(cls, model: ModelFigures) -> RankedModel:
        """Take over the figures that a ranking has."""
        return cls(**{name: getattr(model, name) for name in cls.model_fields})


class LatestRankings(BaseModel):
    """The default ranking in short, best first; `/api/model-comparison` has the figures behind."""

    model_config = ConfigDict(frozen=True)

    rankings: tuple[RankedModel, ...]
    winner: str | None
    """The first model's id, if it has a score and all models have the same conditions; null where
    models are filtered."""

    profile: str
    profiles: tuple[str, ...]
    """The profiles that the experiments have scores by, their own one first."""

    latest_at: datetime | None
    """The creation of the newest experiment in the ranking; null without one."""

    note: str | None
    """The filters, and a caution for comparisons; null without both."""

    @classmethod
    def of(cls, comparison: ModelComparison) -> LatestRankings:
        """Shorten a comparison."""
        newest = max((each.created_at for each in comparison.experiments), default=None)
        return cls(
            rankings=tuple(map(RankedModel.of, comparison.models)),
            winner=comparison.winner,
            profile=comparison.profile,
            profiles=comparison.profiles,
            latest_at=newest,
            note=" ".join(comparison.cautions) or None,
        )


class WeeklyComparison(BaseModel):
    """The models of the experiment of one ISO week."""

    model_config = ConfigDict(frozen=True)

    week: str
    weeks: tuple[str, ...]
    """The weeks with an experiment, newest first."""

    comparison: ModelComparison


def ranking_endpoints(
    store: CostedStore, ready: ReadyBytes, known: KnownPools
) -> list[ApiEndpoint]:
    """Return both endpoints, encoded once for each revision of the store."""

    async def rank_latest(request: Request) -> Response:
        results = chosen_results(request)

        async def encode() -> bytes:
            return to_json(LatestRankings.of(await model_comparison(store, *results, known)))

        return ready_response(request, await ready.get(f"rankings {results.key}", encode))

    async def compare_week(request: Request) -> Response:
        week = request.query_params.get("week") or None
        if week is not None and not _WEEK.fullmatch(week):
            raise InvalidInput("week: must be an ISO week such as 2026-W48")
        results = Results(week, chosen_profile(request), chosen_filters(request))

        async def encode() -> bytes:
            return to_json(await _weekly(store, results))

        return ready_response(request, await ready.get(f"weekly {results.key}", encode))

    return [
        ApiEndpoint(
            "/api/latest-rankings",
            rank_latest,
            "The ranking in short: ranks, scores, intervals and coverage, best first",
            LatestRankings,
            parameters=(EXPERIMENT, PROFILE, *FILTERS),
            problems=PROBLEMS,
        ),
        ApiEndpoint(
            "/weekly",
            compare_week,
            "The models of a week's experiment, best first; without a week, of the newest one",
            WeeklyComparison,
            description="The experiment of a week is the one with the ISO week as its occasion, as "
            "the weekly schedule plans it.",
            parameters=(
                QueryParameter(
                    "week",
                    "The ISO week, such as 2026-W48.",
                    {"type": "string", "pattern": f"^{_WEEK.pattern}$"},
                ),
                PROFILE,
                *FILTERS,
            ),
            problems={
                400: "Several experiments have this week as their occasion; the detail names them",
                404: "There is no experiment of this week, or of any",
                422: "A parameter is none, or names what the week's experiment does not have",
                503: "The store does not answer",
            },
        ),
    ]


async def _weekly(store: CostedStore, results: Results) -> WeeklyComparison:
    weeks = await _weeks(store)
    wanted = results.experiment or next(iter(weeks), None)
    if wanted not in weeks:
        which = "any week" if wanted is None else wanted
        known = f"; there are {', '.join(weeks[:5])}" if weeks else ""
        raise UnknownExperiment(f"week: there is no experiment of {which}{known}")
    comparison = await model_comparison(store, wanted, results.profile, results.filters)
    return WeeklyComparison(week=wanted, weeks=weeks[:_WEEKS_LISTED], comparison=comparison)


async def _weeks(store: Experiments) -> tuple[str, ...]:
    occasions = {each.occasion for each in await store.outlines() if each.occasion}
    return tuple(sorted(filter(_WEEK.fullmatch, occasions), reverse=True))


CHANGED: Final = QueryParameter(
    "changed",
    f"Points before this time are compared with those at it or later. {TIMES}",
    {"type": "string"},
)

FIGURE: Final = QueryParameter(
    "figure",
    f"The figure to follow: a vector, or `{TURNS_KEPT}`, which needs scenarios of several turns "
    f"and scores by a profile that counts breaks, `{FIDELITY}` unless another one is named.",
    {"type": "string", "minLength": 1, "maxLength": 300, "default": OVERALL},
)

MOST_TURNS: Final = 1000

TURN: Final = QueryParameter(
    "turn",
    "One turn: every figure is that of it alone.",
    {"type": "integer", "minimum": 1, "maximum": MOST_TURNS},
)

KEY = "timeseries "
"""The cache key of all models; what is asked for follows, if anything."""


def timeseries_endpoints(store: TimelineStore, ready: ReadyBytes) -> list[ApiEndpoint]:
    """Return the endpoint, encoded once for each revision of the store."""
    known = KnownScores()

    async def show_timeseries(request: Request) -> Response:
        model, profile = chosen_name(request, "model"), chosen_profile(request)
        filters = replace(chosen_time(request), dimension=chosen_name(request, "dimension"))
        figure = chosen_name(request, "figure") or OVERALL
        turn = whole_number(request, "turn", default=0, low=1, high=MOST_TURNS) or None
        written = request.query_params.get("changed")
        changed = written_time("changed", written) if written else None

        async def encode() -> bytes:
            found = await timeseries(
                store,
                model,
                profile,
                filters,
                known,
                figure=figure,
                turn=turn,
                changed=changed,
            )
            return to_json(found)

        asked = figure if figure != OVERALL else None, str(turn) if turn else None
        at = changed.isoformat() if changed else None
        key = KEY + asked_key(model, profile, *asked, at, *filters.key)
        return ready_response(request, await ready.get(key, encode))

    return [
        ApiEndpoint(
            "/api/timeseries",
            show_timeseries,
            "Each model's score, or another figure, over time, with trends and change points: one "
            "point per experiment",
            Timeseries,
            parameters=(MODEL, PROFILE, FIGURE, TURN, DIMENSION, SINCE, UNTIL, CHANGED),
            problems={
                422: "A parameter is no id, name or time, or names what no experiment has, or "
                "there is no score by the profile",
                503: "The store does not answer",
            },
            ready=partial(ready.fresh, KEY),
        )
    ]
