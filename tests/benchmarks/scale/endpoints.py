"""The time of each request that the pages make, when the store has just changed."""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from socratic_bench.domain.experiment.manifest import Experiment
from tests.benchmarks.filled_stores import PENDING
from tests.benchmarks.scale.stores import FilledStore

ROUNDS = 5
_DEADLINE = 60.0
_REST_AFTER = 2
"""The API serves an answer for twice as long as it took to make."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a page."""

    name: str
    path: str


def asked_of(experiments: Sequence[Experiment]) -> list[Asked]:
    """Return the requests of all pages, with the first, the middle and the last page of lists."""
    first, last = experiments[0], experiments[-1]
    manifest = first.manifest
    a, b = (quote(model.id, safe="") for model in manifest.models[:2])
    scenario = manifest.scenarios[0]
    runs = manifest.planned_runs
    of_scenario = f"&model={a}&scenario={scenario.id}"
    one = first.run(manifest.models[0].id, scenario, max(1, manifest.repeats - 1)).run_id
    id_ = first.experiment_id
    results = f"/api/detailed-results?experiment={id_}"
    return [
        Asked("the ranking", "/api/model-comparison"),
        Asked("the ranking of one experiment", f"/api/model-comparison?experiment={id_}"),
        Asked("the ranking of all experiments", "/api/model-comparison?experiment=all"),
        Asked("the ranking as CSV", "/api/model-comparison?format=csv"),
        Asked("the ranking in short", "/api/latest-rankings"),
        Asked("a week", f"/weekly?week={last.occasion}"),
        Asked("costs", "/api/cost-analysis"),
        Asked("all models over time", "/api/timeseries"),
        Asked("one model over time", f"/api/timeseries?model={a}"),
        Asked("the heat map", "/api/scenario-scores"),
        Asked("the scenarios", "/api/scenarios"),
        Asked("two models", f"/api/compare?a={a}&b={b}"),
        Asked("experiments, first page", "/api/experiments"),
        Asked(
            "experiments, last page",
            f"/api/experiments?offset={max(0, len(experiments) - 100)}",
        ),
        Asked("one experiment", f"/api/experiments/{id_}"),
        Asked("pending runs", f"/api/experiments/{id_}/pending?limit={PENDING}"),
        Asked("runs, first page", results),
        Asked("runs, middle page", f"{results}&offset={runs // 2}"),
        Asked("runs, last page", f"{results}&offset={runs - 50}"),
        Asked("runs of a cell, first page", results + of_scenario),
        Asked(
            "runs of a cell, last page",
            f"{results}{of_scenario}&offset={max(0, manifest.repeats - 50)}",
        ),
        Asked("one run", f"/runs/{one}/summary"),
        Asked("turns of a run", f"/runs/{one}/turns"),
    ]


async def times_of(stores: Sequence[FilledStore]) -> dict[str, list[float]]:
    """Return the median seconds of each request, one figure for each store, in turns."""
    async with httpx.AsyncClient(timeout=_DEADLINE) as client:
        table: dict[str, list[float]] = {}
        for requests in zip(*(asked_of(store.experiments) for store in stores), strict=True):
            taken: list[list[float]] = [[] for _ in stores]
            for _ in range(ROUNDS + 1):  # the first opens connections and reads the plans
                for store, asked, times in zip(stores, requests, taken, strict=True):
                    times.append(await _time(client, store, asked))
            table[requests[0].name] = [statistics.median(times[1:]) for times in taken]
    return table


async def _time(client: httpx.AsyncClient, store: FilledStore, asked: Asked) -> float:
    await store.change()
    begun = time.perf_counter()
    answer = await client.get(store.address + asked.path)
    taken = time.perf_counter() - begun
    if answer.status_code == 503:  # the store took longer than the API waits for it
        return math.inf
    answer.raise_for_status()
    await asyncio.sleep(_REST_AFTER * taken)
    return taken
