"""The failures of runs, model by model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from socratic_bench.domain.trouble import one_line
from socratic_bench.ports.stores.aggregates import Aggregates, FailureCount
from socratic_bench.reporting.leaderboard.comparison import ModelComparison
from socratic_bench.reporting.leaderboard.figures import ModelFigures
from socratic_bench.scoring.statuses import Status


@dataclass(slots=True)
class ModelFailures:
    """The failed runs of one model."""

    counts: Counter[str] = field(default_factory=Counter)
    """Failed runs by class."""

    examples: dict[str, str] = field(default_factory=dict)
    """The message of one failed run of each class."""

    def add(self, failed: FailureCount) -> None:
        """Add failed runs of one class."""
        self.counts[failed.kind] += failed.runs
        self.examples.setdefault(failed.kind, one_line(failed.message))


async def model_failures(store: Aggregates, experiment_id: str) -> Mapping[str, ModelFailures]:
    """Return the failures of the models with failed runs.

    A run does not count once it has ended with a response.
    """
    failures: dict[str, ModelFailures] = {}
    for each in await store.failure_kinds(experiment_id):
        failures.setdefault(each.model_id, ModelFailures()).add(each)
    return failures


async def why_unscored(store: Aggregates, comparison: ModelComparison) -> Mapping[str, str]:
    """Return the most frequent status or failure of each model with ended but no scored runs."""
    reasons: dict[str, str] = {}
    for model in comparison.models:
        if model.overall_score is not None or not model.statuses:
            continue
        reason = max(model.statuses, key=model.statuses.__getitem__)
        if reason == Status.ERROR:
            reason = await _most_frequent(store, model) or reason
        reasons[model.model_id] = reason
    return reasons


async def _most_frequent(store: Aggregates, model: ModelFigures) -> str | None:
    for experiment_id in model.experiment_ids:
        failures = await model_failures(store, experiment_id)
        if model.model_id in failures:
            [(kind, _)] = failures[model.model_id].counts.most_common(1)
            return kind
    return None
