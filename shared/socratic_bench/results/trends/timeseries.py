"""A figure of each model over time, in the shape of `/api/timeseries`: one point per experiment."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.experiment.outline import ExperimentOutline, ModelOutline
from socratic_bench.domain.identifiers import run_id
from socratic_bench.errors import InvalidInput, UnknownModel
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.cache.pools import own_answers
from socratic_bench.results.cache.scores import (
    NO_SCORES,
    ExperimentScores,
    KnownScores,
    ModelScores,
    model_scores,
    read_scores,
)
from socratic_bench.results.experiment_choice import CostedStore, cells_under, scored_by
from socratic_bench.results.fidelity.fidelity import (
    FIDELITY,
    require_breaks,
    surely_counts_breaks,
)
from socratic_bench.results.fidelity.figures import LostRuns
from socratic_bench.results.fidelity.text_formats import DEPARTS, LAPSE
from socratic_bench.results.filters import EVERYTHING, Filters, model_ids
from socratic_bench.results.trends.changes import (
    BenchmarkPart,
    Change,
    Measured,
    SeriesTrend,
    VersionChange,
    benchmark_changes,
    changes,
    joined,
    trends,
    version_changes,
)
from socratic_bench.results.trends.figures import (
    TURNS_KEPT,
    FigureChoice,
    KnownFigures,
    TurnsKeptFigure,
)
from socratic_bench.results.trends.levels import (
    DateDifference,
    DetectableChange,
    SeriesChangePoint,
    change_points,
    date_difference,
    detectable_changes,
)
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_composition
from socratic_bench.version import __version__

MOST_POINTS: Final = 104
"""The most experiments, newest first: two years of one a week."""


class Point(BaseModel):
    """One model in one experiment."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    title: str | None
    """The experiment's name and its occasion; null without both."""

    created_at: datetime
    profile: str
    conditions_id: str
    joins: bool
    """Whether profile, scenarios, prompt and parameters are those of the point before. A line
    between two points that do not join would show a change of the benchmark as one of the model."""

    overall_score: float | None
    """The overall score, whatever the figure of the series."""

    value: float | None
    """The figure of the series: a score, or turns kept."""

    confidence_interval: tuple[float, float] | None
    """Of the value: 95 %, clustered by scenario; null with fewer than five scenarios."""

    coverage: float | None
    total_runs: int
    lost: LostRuns | None = Field(default=None, exclude_if=lambda each: each is None)
    """Runs lost to turns kept; left out without one, and with another figure."""

    benchmark_changed: tuple[BenchmarkPart, ...] = Field(
        default=(), exclude_if=lambda parts: not parts
    )
    """The parts of the benchmark that differ from those of the point before; left out if none."""

    change: Change | None
    """The difference from the point before; null where it does not join."""

    reused: int = Field(default=0, exclude_if=lambda count: not count)
    """Answers that are copies of an earlier experiment's: changes are those of the others. Left out
    if 0."""

    answers: int = Field(default=0, exclude_if=lambda count: not count)
    """Answers with a text, where some are copies; left out without one."""

    model_versions: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """The versions of the model that the provider reported, by name; left out where it reported
    none, and in a series of all models. Of experiments of earlier versions of Socratic Bench they
    are those of the first and the last run."""


class ModelSeries(BaseModel):
    """The points of one model, oldest first."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    kind: Literal["reference", "model"]
    """`reference` is a built-in archetype, no real model."""

    points: tuple[Point, ...]
    trends: tuple[SeriesTrend, ...]
    """A trend for each stretch of five or more points that join."""

    change_points: tuple[SeriesChangePoint, ...]
    """The change point of each stretch of eight or more points that join; `is_real` says whether
    chance explains it."""

    detectable_changes: tuple[DetectableChange, ...]
    """The minimal detectable change of each stretch of four or more points that join."""

    date_difference: DateDifference | None = Field(
        default=None, exclude_if=lambda found: found is None
    )
    """The points before and after the date that was asked for; left out without one."""

    version_changes: tuple[VersionChange, ...] = Field(default=(), exclude_if=lambda each: not each)
    """Left out where the provider reported no change, and in a series of all models."""


class Timeseries(BaseModel):
    """The points of all models, by model id."""

    model_config = ConfigDict(frozen=True)

    figure: str
    """`overall`, a vector, or `turns-kept`."""

    turn: int | None
    """The turn that the figure is of alone; null: all turns."""

    dimension: str | None
    greatest: float
    """The greatest value that a point may have: 1, or the last turn in which a run can break."""

    models: tuple[ModelSeries, ...]
    experiments: int
    """Experiments with a point."""

    left_out: int
    """Older experiments, beyond what one answer holds."""

    known_figures: tuple[str, ...]
    """The figures that may be asked for."""

    known_turns: int
    """The turns of the longest scenario."""

    known_dimensions: tuple[str, ...]
    notes: tuple[str, ...]
    """What a reader must know of the figure, a sentence each."""

    version: str = __version__
    """The version of Socratic Bench that made the answer."""


class TimelineStore(CostedStore, Responses, Protocol):
    """Experiments, cells and responses: the latter name the versions of a model."""


async def timeseries(
    store: TimelineStore,
    model: str | None = None,
    profile: str | None = None,
    filters: Filters = EVERYTHING,
    known: KnownScores | None = None,
    *,
    figure: str = OVERALL,
    turn: int | None = None,
    changed: datetime | None = None,
) -> Timeseries:
    """Return the points of all models, or of one. Raises UnknownModel, NoScores, InvalidInput.

    A point is by its experiment's own profile, or by `profile`: then experiments without scores by
    it have none. Turns kept are by FIDELITY unless `profile` names another one. Of `filters`, the
    time chooses the points, and a dimension their scores, as `turn` does: changes and trends are
    those of the dimension. Experiments that do not plan for the figure have no point. The newest
    MOST_POINTS experiments have points, and fewer where their cells are many. `known` keeps the
    scores of all models for the next call. Points before `changed` are compared with those at it or
    later.
    """
    choice = FigureChoice(figure, turn, filters.dimension)
    every = await store.outlines()
    model = None if model is None else _id_called(model, every)
    asking = [each for each in every if model is None or model in each.model_ids]
    asking = list(replace(filters, models=()).fitting(asking))
    figures = await _known_figures(store, asking[:MOST_POINTS], profile)
    if choice.is_turns_kept:
        profile = profile or FIDELITY
        require_breaks(profile)
    asking = choice.fitting(asking, profile)
    if profile is not None:
        ids = [each.experiment_id for each in asking[:MOST_POINTS]]
        scored = set(await scored_by(store, ids, profile))
        asking = [each for each in asking if each.experiment_id in scored]
    newest = asking[:MOST_POINTS]
    if model is None and known is not None and not filters and choice == FigureChoice():
        scores = await known.of_all_models(store, newest, profile)
    else:
        scores = await read_scores(store, newest, profile, choice, model)
    shown = [each for each in reversed(newest) if each.experiment_id in scores]
    chosen = Chosen(model, profile, choice, changed)
    versions = {} if model is None else await _versions(store, model, shown)
    own = {} if model is None else await _own(store, model, shown, scores, chosen)
    series = await asyncio.to_thread(_series, shown, scores, chosen, versions, own)
    return Timeseries(
        figure=figure,
        turn=turn,
        dimension=filters.dimension,
        greatest=max(map(choice.horizon, shown), default=1) if choice.is_turns_kept else 1,
        models=series,
        experiments=len(shown),
        left_out=len(asking) - len(shown),
        known_figures=figures.names,
        known_turns=figures.turns,
        known_dimensions=figures.dimensions,
        notes=(*([LAPSE, DEPARTS] if choice.is_turns_kept else ()), *choice.sentences()),
    )


class Chosen(NamedTuple):
    """What a reader asks for."""

    model: str | None
    profile: str | None
    """The profile, if it is not each experiment's own."""

    choice: FigureChoice
    changed: datetime | None


def _id_called(model: str, experiments: Sequence[ExperimentOutline]) -> str:
    """Return the id of a model that is written by id or name. Raises UnknownModel."""
    try:
        return model_ids((model,), experiments)[0]
    except InvalidInput as error:
        raise UnknownModel(str(error)) from None


async def _known_figures(
    store: CostedStore, experiments: Sequence[ExperimentOutline], profile: str | None
) -> KnownFigures:
    """Return what a series of these experiments can show."""
    several = [
        each.experiment_id for each in experiments if FigureChoice(TURNS_KEPT).scenarios(each)
    ]
    scored = await store.scored_profiles(several) if several else {}
    counting = profile or FIDELITY
    keeps_turns = any(counting in names for names in scored.values())
    keeps_turns = keeps_turns and surely_counts_breaks(counting)
    return KnownFigures.of(experiments, profile, keeps_turns=keeps_turns)


async def _versions(
    store: Responses, model: str, experiments: Sequence[ExperimentOutline]
) -> dict[str, tuple[str, ...]]:
    """Return the versions that the provider reported in each experiment, by its id.

    For cells that do not count them. It reads the first and the last planned run of each.
    """
    runs = {
        each.experiment_id: [
            run_id(each.experiment_id, model, each.scenarios[0].id, 1),
            run_id(each.experiment_id, model, each.scenarios[-1].id, each.repeats),
        ]
        for each in experiments
    }
    found = await store.responses({id_ for ids in runs.values() for id_ in ids})
    return {
        experiment_id: tuple(
            dict.fromkeys(
                response.model_version
                for id_ in ids
                for response in found.get(id_, ())
                if response.model_version
            )
        )
        for experiment_id, ids in runs.items()
    }


async def _own(
    store: TimelineStore,
    model: str,
    experiments: Iterable[ExperimentOutline],
    scores: Mapping[str, ExperimentScores],
    chosen: Chosen,
) -> dict[str, ModelScores]:
    """Return the scores of a model's own answers where an experiment has copies besides."""
    own = {}
    for each in experiments:
        found = scores[each.experiment_id].models.get(model, NO_SCORES)
        if not 0 < found.reused < found.answers:
            continue
        shown = chosen.profile or each.profile
        cells = await store.cells([each.experiment_id], model)
        asked = await own_answers(store, each.experiment_id, cells_under(cells, shown))
        own[each.experiment_id] = await asyncio.to_thread(
            model_scores, asked, known_composition(shown), each, chosen.choice
        )
    return own


def _series(
    experiments: Iterable[ExperimentOutline],
    scores: Mapping[str, ExperimentScores],
    chosen: Chosen,
    versions: Mapping[str, tuple[str, ...]],
    own_scores: Mapping[str, ModelScores],
) -> tuple[ModelSeries, ...]:
    """Return the series of each model; `experiments` come oldest first. `own_scores` are those of
    answers that are no copies, by experiment, where it has both.
    """
    model, changed, words = chosen.model, chosen.changed, chosen.choice.wording
    series: defaultdict[str, list[Measured]] = defaultdict(list)
    newest: dict[str, ModelOutline] = {}
    for experiment in experiments:
        found = scores[experiment.experiment_id].models
        reported = versions.get(experiment.experiment_id, ())
        for asked in experiment.models:
            if model in {None, asked.id}:
                own = found.get(asked.id, NO_SCORES)
                named = reported if model is None else own.versions or reported
                without_copies = own_scores.get(
                    experiment.experiment_id, NO_SCORES if own.reused else own
                )
                shown = chosen.profile or experiment.profile
                measured = Measured(experiment, shown, own, named, without_copies)
                series[asked.id].append(measured)
                newest[asked.id] = asked
    shown_models = {model_id: asked.model() for model_id, asked in newest.items()}
    return tuple(
        ModelSeries(
            model_id=each,
            model_name=shown_models[each].display_name,
            kind="reference" if is_reference(shown_models[each]) else "model",
            points=tuple(_points(series[each])),
            trends=tuple(trends(series[each], words)),
            change_points=tuple(change_points(series[each], words)),
            detectable_changes=tuple(detectable_changes(series[each], words)),
            date_difference=date_difference(series[each], changed, words) if changed else None,
            version_changes=version_changes(series[each], words),
        )
        for each in sorted(series)
    )


def _points(series: Sequence[Measured]) -> Iterator[Point]:
    before: Measured | None = None
    for own, change in zip(series, changes(series), strict=True):
        experiment, figure = own.experiment, own.scores.figure
        yield Point(
            experiment_id=experiment.experiment_id,
            title=experiment.title,
            created_at=experiment.created_at,
            profile=own.profile,
            conditions_id=experiment.conditions_id,
            joins=before is not None and joined(own, before),
            overall_score=own.scores.overall,
            value=None if figure is None else figure.value,
            confidence_interval=None if figure is None else figure.interval,
            coverage=own.scores.coverage,
            total_runs=own.scores.runs,
            lost=figure.lost if isinstance(figure, TurnsKeptFigure) else None,
            benchmark_changed=() if before is None else benchmark_changes(before, own),
            change=change,
            model_versions=own.versions,
            reused=own.scores.reused,
            answers=own.scores.answers if own.scores.reused else 0,
        )
        before = own
