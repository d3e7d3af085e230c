"""Checks of an experiment against thresholds: scores, coverage, and no fall below a baseline.

A gate decides whether a change may be merged, so it fails on whatever could mislead it: on runs
that are pending, on answers that an earlier experiment asked for, on a baseline whose models,
scenarios or runs are gone. An option allows each of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from socratic_bench.errors import InvalidInput
from socratic_bench.results.fidelity.fidelity import fidelity
from socratic_bench.results.filters import ids_called
from socratic_bench.results.formats import figure, printable
from socratic_bench.results.gate.baseline_checks import against_baseline
from socratic_bench.results.gate.falls import (
    ROUNDING,
    Check,
    GateStore,
    ModelFall,
    Thresholds,
    asked,
    with_texts,
)
from socratic_bench.results.leaderboard.answer_sentences import sentences
from socratic_bench.results.leaderboard.figures import ModelFigures
from socratic_bench.results.leaderboard.leaderboard import (
    MOST_NAMED,
    ExperimentSummary,
    ModelComparison,
    model_comparison,
)
from socratic_bench.scoring.profiles import weights_sentence
from socratic_bench.version import __version__


class GateReport(BaseModel):
    """Every check of an experiment; it passes if each of them does."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    experiment_name: str | None
    occasion: str | None
    created_at: datetime
    passed: bool
    checks: tuple[Check, ...]
    falls: tuple[ModelFall, ...] = ()
    """The models beside the baseline; empty without one."""

    notes: tuple[str, ...] = ()
    """What a reader has to know about the checked models' answers, one sentence each."""

    version: str = __version__


async def gate_report(
    store: GateStore, experiment: str, thresholds: Thresholds, now: datetime
) -> GateReport:
    """Check an experiment; `now` tells how old its answers are.

    Raises UnknownExperiment, AmbiguousExperiment, and InvalidInput if a threshold names a model
    that the experiment does not have, if no model is left to check, or if the turns kept are to be
    checked and are not known. Raises NoScores for a profile without scores.
    """
    comparison = await model_comparison(store, experiment, thresholds.profile)
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
        *_fresh(shown.values(), thresholds, now),
        *_overall(models, named, thresholds, now),
        *_coverage(models, thresholds),
        *await _turns_kept(store, summary.experiment_id, models, thresholds.least_turns_kept),
    ]
    falls: Sequence[ModelFall] = ()
    if thresholds.baseline is not None:
        more, falls = await against_baseline(store, summary.experiment_id, models, thresholds, now)
        checks += more
    checked = {check.model_id for check in checks} - {each.model_id for each in falls}
    told = sentences(
        {
            printable(model.model_id): model.notes
            for model in comparison.models
            if model.model_id in checked
        },
        MOST_NAMED,
    )
    told += [note for each in falls for note in each.notes]
    if (weights := weights_sentence(comparison.profile)) is not None:
        told.insert(0, weights)
    return GateReport(
        experiment_id=summary.experiment_id,
        experiment_name=summary.name,
        occasion=summary.occasion,
        created_at=summary.created_at,
        passed=all(check.passed for check in checks),
        checks=tuple(checks),
        falls=await with_texts(store, falls, {c.model_id for c in checks if not c.passed}),
        notes=tuple(dict.fromkeys(told)),
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
        value=summary.done,
        threshold=summary.planned,
    )


def _fresh(
    models: Iterable[ModelFigures], thresholds: Thresholds, now: datetime
) -> Iterable[Check]:
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
        yield Check(
            model_id=model.model_id,
            name=name,
            passed=False,
            detail=(
                f"{reused} of {answers} answers are those of an earlier experiment, "
                f"{asked(model, now)}: `run --again` asks again"
            ),
            value=reused,
            threshold=0 if thresholds.fresh_only else answers - 1,
        )


def _named(
    comparison: ModelComparison, least_of: Mapping[str, float]
) -> list[tuple[ModelFigures, float]]:
    models = {each.model_id: each for each in comparison.models}
    names = [(id_, each.model_name) for id_, each in models.items()]
    found = []
    for wanted, least in least_of.items():
        try:
            ids = ids_called("model", (wanted,), names, "the experiment has no")
        except InvalidInput as error:
            raise InvalidInput(f"--fail-under: {error}") from None
        found += [(models[id_], least) for id_ in ids]
    return found


def _overall(
    models: Iterable[ModelFigures],
    named: Sequence[tuple[ModelFigures, float]],
    thresholds: Thresholds,
    now: datetime,
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
            detail=(
                "no response has a score"
                if score is None
                else f"{_with_lower_end(model)}; answers {asked(model, now)}"
            ),
            value=score,
            threshold=least,
        )


def _with_lower_end(model: ModelFigures) -> str:
    """Return the overall score with the lower end of its interval.

    It has more places than a threshold: 0.597 is below 0.60.
    """
    return f"overall is {model.overall_score:.4f}{_lower_end(model.confidence_interval)}"


def _lower_end(interval: tuple[float, float] | None) -> str:
    return f" (interval from {figure(interval[0])})" if interval else ""


def _coverage(models: Iterable[ModelFigures], thresholds: Thresholds) -> Iterable[Check]:
    if thresholds.least_coverage is None:
        return
    for model in models:
        coverage = model.coverage or 0.0
        yield Check(
            model_id=model.model_id,
            name=f"coverage is at least {100 * thresholds.least_coverage:g} %",
            passed=coverage >= thresholds.least_coverage - ROUNDING,
            detail=f"coverage is {100 * coverage:.1f} %",
            value=coverage,
            threshold=thresholds.least_coverage,
        )


async def _turns_kept(
    store: GateStore, experiment_id: str, models: Iterable[ModelFigures], least: float | None
) -> list[Check]:
    """Check the turns that models keep asking."""
    if least is None:
        return []
    table = await fidelity(store, experiment_id)
    known = {each.model_id: each for each in table.models}
    return [
        Check(
            model_id=model.model_id,
            name=f"turns kept are at least {least:g}",
            passed=kept is not None and kept >= least - ROUNDING,
            detail=(
                "no run is known in its first two turns"
                if kept is None
                else f"turns kept are {kept:.4f} of {table.horizon}{_lower_end(ends)}"
            ),
            value=kept,
            threshold=least,
        )
        for model in models
        for own in [known[model.model_id]]
        for kept, ends in [(own.turns_kept, own.turns_kept_interval)]
    ]
