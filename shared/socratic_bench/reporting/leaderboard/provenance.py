"""The sentences below a table for a page or a paper: its scale, and where its figures are from."""

from __future__ import annotations

from typing import Final

from socratic_bench.reporting.formats import figure, moment
from socratic_bench.reporting.leaderboard.baseline import CONSTANT_REPLY
from socratic_bench.reporting.leaderboard.comparison import ExperimentSummary, ModelComparison
from socratic_bench.version import __version__

SCALE: Final = (
    "Scores run from 0.00 to 1.00; intervals are 95 %, clustered by scenario, and no shorter than "
    "three more scenarios would make them in which a vector fell to the end of its scale"
)

MOST_UNANIMOUS: Final = 4
"""The most sentences about vectors with equal answers."""

TIES: Final = (
    "Models that share ranks, such as 1\u20133, differ by no more than chance may (paired by "
    "scenario, Holm-corrected, 5 %)."
)

BASELINE: Final = (
    "The constant reply is no tutor. It answers every message \u201c"
    f"{CONSTANT_REPLY}\u201d A mean below it tells of no reading."
)


def is_tied(comparison: ModelComparison) -> bool:
    """Whether models of the table share ranks."""
    intervals = [model.rank_interval for model in comparison.models if model.rank_interval]
    return any(best < worst for best, worst in intervals)


def reading_aid(comparison: ModelComparison) -> list[str]:
    """Return what a reader must know of the figures, one sentence each."""
    sentences = [f"{SCALE}; a dash is an unknown figure."]
    if is_tied(comparison):
        sentences.append(TIES)
    if any(model.kind == "reference" for model in comparison.models):
        sentences.append(
            "A reference tutor is a built-in archetype that shows the scale, not a real model."
        )
    if comparison.baseline is not None:
        sentences.append(BASELINE)
    return [*sentences, *comparison.cautions]


def unanimity(comparison: ModelComparison) -> list[str]:
    """Return what equal answers leave open, a sentence for each vector that says yes or no.

    Of real models alone: a reference tutor answers from fixed texts.
    """
    found = (
        f"{name} {figure(vector.mean)}: {vector.note}."
        for name in comparison.vectors
        for model in comparison.models
        if model.kind == "model" and (vector := model.vectors[name]).note
    )
    return list(dict.fromkeys(found))[:MOST_UNANIMOUS]


def provenance(comparison: ModelComparison) -> list[str]:
    """Return the version, the profile, and each experiment with its date and conditions."""
    return [
        f"Socratic Bench {__version__}, profile {comparison.profile}.",
        *(_origin(each) for each in comparison.experiments),
    ]


def _origin(experiment: ExperimentSummary) -> str:
    title = experiment.name or experiment.occasion
    named = f"{title} ({experiment.experiment_id})" if title else experiment.experiment_id
    return (
        f"Experiment {named}, {moment(experiment.created_at)}, conditions "
        f"{experiment.conditions_id}, {experiment.done} of {experiment.planned} runs."
    )
