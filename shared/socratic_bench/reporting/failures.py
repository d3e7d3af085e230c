"""Why runs failed, model by model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from socratic_bench.domain.manifest import Experiment
from socratic_bench.ports.store import Store

BATCH = 500
"""Failed runs that are looked up at a time."""


async def failure_kinds(store: Store, experiment: Experiment) -> Mapping[str, Mapping[str, int]]:
    """How many runs of each model failed why, the most frequent kind first.

    A run does not count once it has ended with a response.
    """
    failed = {
        failure.run.run_id: failure
        for failure in await store.failure_rows(experiment.experiment_id)
        if failure.profile == experiment.manifest.profile
    }
    kinds: dict[str, Counter[str]] = {}
    run_ids = list(failed)
    for start in range(0, len(run_ids), BATCH):
        batch = run_ids[start : start + BATCH]
        responses = await store.responses(batch)
        for run_id in batch:
            answered = responses.get(run_id, ())
            if not (answered and answered[-1].last_turn):
                failure = failed[run_id]
                kinds.setdefault(failure.run.model_id, Counter())[failure.kind] += 1
    return {model_id: dict(counts.most_common()) for model_id, counts in kinds.items()}
