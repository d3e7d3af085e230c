"""What the gradings of an experiment cost: a profile that needs no grade calls no model."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.grading import grading_run_id
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.ports.stores.responses import Responses
from socratic_bench.reporting.costs import usd
from socratic_bench.reporting.formats import dollars

RUNS_AT_ONCE = 500
"""Runs whose responses are read together."""


class ProfileCost(BaseModel):
    """The calls of models that a profile's scores took. A formula takes none."""

    model_config = ConfigDict(frozen=True)

    calls: int
    """Replies of the grader, one for each distinct text; those of failed calls are not kept."""

    total_cost_usd: float | None
    """The price of these replies, of adopted ones too; null where no price is known."""

    mean_latency_ms: float | None


NO_CALLS = ProfileCost(calls=0, total_cost_usd=0.0, mean_latency_ms=None)


async def profile_cost(store: Responses, experiment: Experiment, profile: str) -> ProfileCost:
    """Return what the scores of a profile cost, from the stored replies of the grader."""
    manifest = experiment.manifest
    if manifest.use_llm_exploratory is None or profile != manifest.profile:
        return NO_CALLS
    known: set[str] = set()
    costs, latencies = array("q"), array("q")
    for run_ids in _batches(experiment.runs()):
        answered = await store.responses(run_ids)
        texts = {response.text for responses in answered.values() for response in responses}
        names = {grading_run_id(experiment.experiment_id, text) for text in texts} - known
        for name, replies in (await store.responses(names)).items():
            known.add(name)
            costs.extend(each.cost_nanodollars or 0 for each in replies[:1] if _has_price(each))
            latencies.extend(each.latency_ms or 0 for each in replies[:1] if each.latency_ms)
    return ProfileCost(
        calls=len(known),
        total_cost_usd=usd(sum(costs)) if costs else None,
        mean_latency_ms=sum(latencies) / len(latencies) if latencies else None,
    )


def _has_price(reply: Response) -> bool:
    return reply.cost_nanodollars is not None


def _batches(runs: Iterator[Run]) -> Iterator[set[str]]:
    while batch := {run.run_id for run in islice(runs, RUNS_AT_ONCE)}:
        yield batch


def cost_sentence(profile: str, cost: ProfileCost) -> str:
    """Say what a profile cost, in a sentence."""
    if not cost.calls:
        return f"{profile} calls no model and costs nothing."
    known = cost.total_cost_usd
    price = "their price is unknown" if known is None else f"{dollars(known)} in all"
    latency = "" if cost.mean_latency_ms is None else f", {cost.mean_latency_ms / 1000:.1f} s each"
    gradings = "1 grading" if cost.calls == 1 else f"{cost.calls:,} gradings"
    return f"{profile} took {gradings} by a model: {price}{latency}."
