"""The remaining work of an experiment, given the store: what is reused, and what is called."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.planning.estimate import Estimate, estimate
from socratic_bench.planning.plan import PlanStore, refuse_stopped
from socratic_bench.planning.reuse import Outlook, Reuse, look_ahead


@dataclass(frozen=True, slots=True)
class Prospect:
    """The remaining work, and its cost."""

    outlook: Outlook
    estimate: Estimate
    begun_at: datetime | None = None
    """When the experiment was created; None for one that is not stored."""

    kept_name: str | None = None
    """The name that the stored experiment keeps, where the configuration has another one."""

    @classmethod
    def from_nothing(cls, experiment: Experiment) -> Prospect:
        """Return the work of an experiment without stored results."""
        manifest = experiment.manifest
        outlook = Outlook(manifest.planned_runs)
        for pair in experiment.conversation_keys:
            outlook.left[pair] = manifest.repeats
        return cls(outlook, estimate(manifest))


async def look_into(
    store: PlanStore,
    experiment: Experiment,
    *,
    fresh: bool,
    adopt: bool,
    retry_failed: bool = False,
) -> Prospect:
    """Find the remaining work and, if `adopt`, take over answers of other experiments.

    `retry_failed` includes failed runs; `fresh` takes over nothing. Raises ExperimentStopped for a
    stopped experiment, unless nothing would be taken over.
    """
    if adopt:
        await refuse_stopped(store, experiment.experiment_id)
    reuse = None if fresh else Reuse(experiment, store, experiment.created_at)
    outlook = await look_ahead(
        experiment, store, reuse=reuse, adopt=adopt, retry_failed=retry_failed
    )
    spent = 0
    stored = await store.experiment(experiment.experiment_id)
    if stored is not None:
        spent = (await store.spending(experiment.experiment_id)).committed
    answered = outlook.unscored_responses
    return Prospect(
        outlook,
        estimate(experiment.manifest, outlook.left, spent, answered),
        begun_at=None if stored is None else stored.created_at,
        kept_name=None if stored is None else _kept_name(stored, experiment),
    )


def _kept_name(stored: Experiment, planned: Experiment) -> str | None:
    name, wanted = stored.manifest.name, planned.manifest.name
    return name if wanted is not None and wanted != name else None
