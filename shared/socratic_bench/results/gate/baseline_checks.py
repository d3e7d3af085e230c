"""Checks of an experiment against an earlier one: that it has what that had, and did not fall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from socratic_bench.domain.aggregates.statistics import FEWEST_CLUSTERS
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import UnknownExperiment
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.compare.model_difference import ModelDifference, fall
from socratic_bench.results.experiment_choice import ResultStore, find_baseline
from socratic_bench.results.formats import signed
from socratic_bench.results.gate.falls import (
    ROUNDING,
    SHARED_RUNS,
    Check,
    ModelFall,
    Thresholds,
    asked,
)
from socratic_bench.results.leaderboard.figures import ModelFigures


async def against_baseline(
    store: ResultStore,
    experiment_id: str,
    models: Sequence[ModelFigures],
    thresholds: Thresholds,
    now: datetime,
) -> tuple[list[Check], list[ModelFall]]:
    """Compare each model with itself in the baseline, on the scenarios of both.

    Raises UnknownExperiment, unless the thresholds allow that there is no baseline yet.
    """
    outlines = await store.outlines()
    gated = next(each for each in outlines if each.experiment_id == experiment_id)
    name = f"overall falls by at most {thresholds.most_drop:g}"
    try:
        baseline = find_baseline(outlines, thresholds.baseline or "", gated)
    except UnknownExperiment as error:
        if not thresholds.allows_no_baseline:
            raise
        return [Check(model_id="", name=name, passed=True, detail=str(error))], []
    if baseline[0].experiment_id == experiment_id:
        return [_itself(model, name, thresholds, now) for model in models], []
    checks = [*_models_shared(baseline, models, thresholds)]
    falls = []
    for model in models:
        if all(model.model_id not in each.model_ids for each in baseline):
            detail = f"the baseline {baseline[0].experiment_id} does not have the model"
            checks.append(Check(model_id=model.model_id, name=name, passed=True, detail=detail))
            continue
        having = [each for each in baseline if model.model_id in each.model_ids]
        difference = await fall(
            store,
            model.model_id,
            having,
            gated,
            with_copies=thresholds.allows_reused,
            profile=thresholds.profile,
        )
        checks += _shared(difference, len(having), thresholds)
        checks.append(
            _judged(difference, len(having), thresholds.most_drop, name, asked(model, now))
        )
        falls.append(ModelFall.of(difference, len(having)))
    return checks, falls


def _itself(model: ModelFigures, name: str, thresholds: Thresholds, now: datetime) -> Check:
    passes = thresholds.allows_itself or thresholds.allows_no_baseline
    detail = "the experiment is the baseline itself: nothing has changed"
    if not passes:
        detail = (
            f"the experiment is the baseline itself, {asked(model, now)}: nothing was compared; "
            "`run --again` asks a tutor again whose code changed"
        )
    return Check(model_id=model.model_id, name=name, passed=passes, detail=detail)


def _models_shared(
    baseline: Sequence[ExperimentOutline], models: Iterable[ModelFigures], thresholds: Thresholds
) -> Iterable[Check]:
    """Check that the baseline's models are there: one that is gone cannot fall."""
    before = {
        each.id for outline in baseline for each in outline.models if not is_reference(each.model())
    }
    gone = sorted(before - {model.model_id for model in models})
    if not gone:
        return
    least = 1.0 if thresholds.least_shared is None else thresholds.least_shared
    there = len(before) - len(gone)
    yield Check(
        model_id="",
        name=f"{100 * least:g} % of the baseline's models are there",
        passed=there >= least * len(before) - ROUNDING,
        detail=f"{there} of {len(before)} models; missing: {', '.join(gone)}",
        value=there / len(before),
        threshold=least,
    )


def _shared(
    difference: ModelDifference, experiments: int, thresholds: Thresholds
) -> Iterable[Check]:
    """Check that the two share the baseline's scenarios and runs: what is gone cannot fall."""
    shared, before = difference.scenarios_shared, difference.scenarios_of_first
    least = 1.0 if thresholds.least_shared is None else thresholds.least_shared
    model_id = difference.second.model_id
    if shared < before:
        yield Check(
            model_id=model_id,
            name=f"{100 * least:g} % of the baseline's scenarios are there",
            passed=shared >= least * before - ROUNDING,
            detail=(
                f"{shared} of {before} scenarios; {before - shared} of the baseline's are missing, "
                "have other words or no score"
            ),
            value=shared / before,
            threshold=least,
        )
    least = SHARED_RUNS if thresholds.least_shared is None else thresholds.least_shared
    runs, usual = difference.second.scored, difference.first.scored / experiments
    if runs < usual:
        yield Check(
            model_id=model_id,
            name=f"{100 * least:g} % of the baseline's scored answers are there",
            passed=runs >= least * usual - ROUNDING,
            detail=f"{runs} scored answers, {usual:g} in the baseline, on the scenarios of both",
            value=runs / usual,
            threshold=least,
        )


def _judged(
    difference: ModelDifference, experiments: int, most_drop: float, name: str, answers: str
) -> Check:
    overall, model_id = difference.figures[0], difference.second.model_id
    if overall.difference is None or overall.first is None or overall.second is None:
        detail = "no scenario has a score in both experiments"
        return Check(model_id=model_id, name=name, passed=False, detail=detail)
    interval = overall.interval
    around = f" ({signed(-interval[1])} to {signed(-interval[0])})" if interval else ""
    if difference.scenarios < FEWEST_CLUSTERS:
        chance = f"; fewer than {FEWEST_CLUSTERS} scenarios do not tell whether by chance"
    else:
        chance = "" if difference.is_real else "; chance may explain it"
    digits = _digits(overall.difference, most_drop)
    change = f"{-overall.difference:+.{digits}f}".replace("-", "\u2212")
    if not round(overall.difference, digits):
        change = change[1:]
    second = difference.second
    before = "before" if experiments == 1 else f"in {experiments} experiments before"
    copies = (
        f"; without {difference.left_out} copies among its {second.answers} answers"
        if difference.left_out
        else f"; {second.reused} of its {second.answers} answers are copies"
        if second.reused
        else ""
    )
    return Check(
        model_id=model_id,
        name=name,
        passed=overall.difference <= most_drop + ROUNDING,
        detail=(
            f"{overall.first:.{digits}f} {before}, {overall.second:.{digits}f} now on "
            f"{difference.scenarios} scenarios: {change}{around}{chance}{copies}; answers {answers}"
        ),
        value=overall.difference,
        threshold=most_drop,
    )


def _digits(drop: float, most_drop: float) -> int:
    """Return the places at which a fall and the greatest one allowed differ, and one more."""
    for places in range(2, 5):
        if round(drop, places) != round(most_drop, places):
            return places if places == 2 else places + 1
    return 5
