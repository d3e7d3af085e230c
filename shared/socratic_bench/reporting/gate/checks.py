"""Checks of an experiment against thresholds: scores, coverage, and no fall below a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.statistics import FEWEST_CLUSTERS
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import InvalidInput
from socratic_bench.providers.registry import is_reference
from socratic_bench.reporting.difference.model_difference import ModelDifference, model_difference
from socratic_bench.reporting.experiment_choice import find_baseline
from socratic_bench.reporting.formats import figure, printable, signed
from socratic_bench.reporting.leaderboard.answer_sentences import sentences
from socratic_bench.reporting.leaderboard.comparison import (
    ExperimentSummary,
    ModelComparison,
    model_comparison,
)
from socratic_bench.reporting.leaderboard.figures import ModelFigures
from socratic_bench.reporting.leaderboard.notes import MOST_NAMED
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.version import __version__

ROUNDING: Final = 1e-9
"""A mean this much below its threshold passes: it is the same number, computed otherwise."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What models have to reach. Scores and shares are 0.0 to 1.0."""

    least_overall: float | None = None
    """The least overall score of every real model."""

    least_overall_of: Mapping[str, float] = field(default_factory=dict)
    """The least overall score of single models, by id; reference tutors may be among them."""

    least_coverage: float | None = None
    """The least coverage of every real model."""

    baseline: str | None = None
    """An experiment that no real model may fall below, by `most_drop`."""

    most_drop: float = 0.0
    """How much the overall score of a model may fall on the scenarios of both experiments."""

    least_shared: float = 1.0
    """The least share of the baseline's models, and of a model's scenarios there, that the
    experiment has with the same words."""

    allows_unfinished: bool = False
    """Whether an experiment with pending runs may pass."""

    allows_reused: bool = False
    """Whether an experiment of reused answers alone may pass."""

    fresh_only: bool = False
    """Whether no answer may be a reused one."""


class Check(BaseModel):
    """One check of one model."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    """Empty for a check of the whole experiment."""

    name: str
    """The promise, such as `overall is at least 0.6`."""

    passed: bool
    detail: str
    """The figures that decided."""


class GateReport(BaseModel):
    """Every check of an experiment; it passes if each of them does."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    experiment_name: str | None
    passed: bool
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """What a reader has to know about the checked models' answers, one sentence each."""

    version: str = __version__


async def gate_report(store: ResultStore, experiment: str, thresholds: Thresholds) -> GateReport:
    """Check an experiment.

    Raises UnknownExperiment, AmbiguousExperiment, and InvalidInput if a threshold names a model
    that the experiment does not have, or if no model is left to check.
    """
    comparison = await model_comparison(store, experiment)
    summary = comparison.experiments[0]
    named = _named(comparison, thresholds.least_overall_of)
    models = [each for each in comparison.models if each.kind == "model"]
    if not models and not named:
        raise InvalidInput(
            f"experiment {summary.experiment_id} has no real model to check; "
            "reference tutors are checked by name, as in --fail-under reference/socratic=0.8"
        )
    shown = {each.model_id: each for each in (*models, *(each for each, _ in named))}
    checks = [
        *_finished(summary, thresholds),
        *_fresh(shown.values(), thresholds),
        *_overall(models, named, thresholds),
        *_coverage(models, thresholds),
    ]
    if thresholds.baseline is not None:
        checks += await _drops(store, summary.experiment_id, models, thresholds)
    checked = {check.model_id for check in checks}
    return GateReport(
        notes=tuple(
            sentences(
                {
                    printable(model.model_id): model.notes
                    for model in comparison.models
                    if model.model_id in checked
                },
                MOST_NAMED,
            )
        ),
        experiment_id=summary.experiment_id,
        experiment_name=summary.name,
        passed=all(check.passed for check in checks),
        checks=tuple(checks),
    )


def _finished(summary: ExperimentSummary, thresholds: Thresholds) -> Iterable[Check]:
    """Check that no planned run is pending: coverage counts ended runs alone."""
    if thresholds.allows_unfinished or summary.done >= summary.planned:
        return
    yield Check(
        model_id="",
        name="every planned run has ended",
        passed=False,
        detail=f"{summary.done} of {summary.planned} runs have ended",
    )


def _fresh(models: Iterable[ModelFigures], thresholds: Thresholds) -> Iterable[Check]:
    """Check that answers were asked for: copies tell nothing of a tutor that changed since."""
    for model in models:
        reused, answers = next(
            ((note.count, note.of) for note in model.notes if note.name == "reused"), (0, 0)
        )
        if reused and thresholds.fresh_only:
            name = "no answer is reused"
        elif reused and reused == answers and not thresholds.allows_reused:
            name = "some answers are not reused"
        else:
            continue
        detail = f"{reused} of {answers} answers are those of an earlier experiment"
        yield Check(model_id=model.model_id, name=name, passed=False, detail=detail)


def _named(
    comparison: ModelComparison, least_of: Mapping[str, float]
) -> list[tuple[ModelFigures, float]]:
    by_id = {model.model_id: model for model in comparison.models}
    if unknown := next((model_id for model_id in least_of if model_id not in by_id), None):
        raise InvalidInput(
            f"--fail-under: the experiment has no model {unknown!r}; it has: "
            f"{', '.join(sorted(by_id))}"
        )
    return [(by_id[model_id], least) for model_id, least in least_of.items()]


def _overall(
    models: Iterable[ModelFigures],
    named: Sequence[tuple[ModelFigures, float]],
    thresholds: Thresholds,
) -> Iterable[Check]:
    """Check overall scores; a threshold of a model's own replaces that of all."""
    own = {model.model_id for model, _ in named}
    wanted = list(named)
    if thresholds.least_overall is not None:
        least = thresholds.least_overall
        wanted += ((model, least) for model in models if model.model_id not in own)
    for model, least in wanted:
        score = model.overall_score
        yield Check(
            model_id=model.model_id,
            name=f"overall is at least {least:g}",
            passed=score is not None and score >= least - ROUNDING,
            detail="no response has a score" if score is None else _with_lower_end(model),
        )


def _with_lower_end(model: ModelFigures) -> str:
    """Return the overall score with the lower end of its interval.

    It has more places than a threshold: 0.597 is below 0.60.
    """
    interval = model.confidence_interval
    least = f" (at least {figure(interval[0])})" if interval else ""
    return f"overall is {model.overall_score:.4f}{least}"


def _coverage(models: Iterable[ModelFigures], thresholds: Thresholds) -> Iterable[Check]:
    if thresholds.least_coverage is None:
        return
    for model in models:
        coverage = model.coverage or 0.0
        yield Check(
            model_id=model.model_id,
            name=f"coverage is at least {100 * thresholds.least_coverage:g} %",
            passed=coverage >= thresholds.least_coverage - ROUNDING,
            detail=f"coverage is {_percent(coverage)}",
        )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


async def _drops(
    store: ResultStore,
    experiment_id: str,
    models: Sequence[ModelFigures],
    thresholds: Thresholds,
) -> list[Check]:
    """Compare each model with itself in the baseline, on the scenarios of both."""
    baseline = await find_baseline(store, thresholds.baseline or "", experiment_id)
    checks = [*_models_shared(baseline, models, thresholds)]
    for model in models:
        name = f"overall falls by at most {thresholds.most_drop:g}"
        before, now = (f"{model.model_id}@{id_}" for id_ in (baseline.experiment_id, experiment_id))
        if baseline.experiment_id == experiment_id:
            passed, detail = True, "the experiment is the baseline itself: nothing has changed"
        elif model.model_id not in baseline.model_ids:
            passed, detail = True, f"the baseline {baseline.experiment_id} does not have the model"
        else:
            difference = await model_difference(store, before, now)
            checks += _scenarios_shared(difference, thresholds)
            passed, detail = _judged(difference, thresholds.most_drop)
        checks.append(Check(model_id=model.model_id, name=name, passed=passed, detail=detail))
    return checks


def _models_shared(
    baseline: ExperimentOutline, models: Iterable[ModelFigures], thresholds: Thresholds
) -> Iterable[Check]:
    """Check that the baseline's models are there: one that is gone cannot fall."""
    before = [each.id for each in baseline.models if not is_reference(each.model())]
    gone = sorted(set(before) - {model.model_id for model in models})
    if not gone:
        return
    yield Check(
        model_id="",
        name=f"{100 * thresholds.least_shared:g} % of the baseline's models are there",
        passed=len(before) - len(gone) >= thresholds.least_shared * len(before) - ROUNDING,
        detail=f"{len(before) - len(gone)} of {len(before)} models; missing: {', '.join(gone)}",
    )


def _scenarios_shared(difference: ModelDifference, thresholds: Thresholds) -> Iterable[Check]:
    """Check that the two share the baseline's scenarios: one that is gone cannot fall."""
    shared, before = difference.scenarios, difference.scenarios_of_first
    if shared >= before:
        return
    yield Check(
        model_id=difference.second.model_id,
        name=f"{100 * thresholds.least_shared:g} % of the baseline's scenarios are there",
        passed=shared >= thresholds.least_shared * before - ROUNDING,
        detail=(
            f"{shared} of {before} scenarios; {before - shared} of the baseline's are missing, "
            "have other words or no score"
        ),
    )


def _judged(difference: ModelDifference, most_drop: float) -> tuple[bool, str]:
    overall = difference.figures[0]
    if overall.difference is None or overall.first is None or overall.second is None:
        return False, "no scenario has a score in both experiments"
    interval = overall.interval
    around = f" ({signed(-interval[1])} to {signed(-interval[0])})" if interval else ""
    if difference.scenarios < FEWEST_CLUSTERS:
        chance = f"; fewer than {FEWEST_CLUSTERS} scenarios do not tell whether by chance"
    else:
        chance = "" if difference.is_real else "; chance may explain it"
    digits = _digits(overall.difference, most_drop)
    change = f"{-overall.difference:+.{digits}f}".replace("-", "\u2212")
    detail = (
        f"{overall.first:.{digits}f} before, {overall.second:.{digits}f} now on "
        f"{difference.scenarios} scenarios: {change}{around}{chance}"
    )
    return overall.difference <= most_drop + ROUNDING, detail


def _digits(drop: float, most_drop: float) -> int:
    """Return the places at which a fall and the greatest one allowed differ, and one more."""
    for places in range(2, 5):
        if round(drop, places) != round(most_drop, places):
            return places if places == 2 else places + 1
    return 5
