"""`/api/scenarios` and `/api/scenario-scores`: what scenarios ask, and models' scores on them."""

from __future__ import annotations

import asyncio
from typing import Protocol

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import ApiEndpoint
from socratic_api.routes.query import (
    DIMENSION,
    PROBLEMS,
    PROFILE,
    asked_key,
    chosen_experiment,
    chosen_name,
    chosen_profile,
)
from socratic_api.routes.run_context import RunStore
from socratic_api.routes.runs import EXPERIMENT, MODEL, experiment_of
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.results.experiment_choice import scored_by
from socratic_bench.results.filters import require_known
from socratic_bench.results.scenarios import (
    ScenarioAnalysis,
    ScenarioScores,
    scenario_analysis,
    scenario_scores,
)
from socratic_bench.results.transcripts import scenarios_of


class ScoreStore(RunStore, Aggregates, Protocol):
    """The roles of the store with plans and cells."""


def score_endpoints(store: ScoreStore, ready: ReadyBytes) -> list[ApiEndpoint]:
    """Return the endpoint, encoded once for each experiment and revision of the store."""

    async def score_scenarios(request: Request) -> Response:
        model, dimension = (chosen_name(request, each) for each in ("model", "dimension"))
        experiment = await experiment_of(store, chosen_experiment(request))
        models = experiment.manifest.models_by_id
        if model is not None:
            require_known("model", model, models, "the experiment has no")
        shown = [each for each in models.values() if model in {None, each.id}]
        scenarios = scenarios_of(experiment, dimension)
        profile = chosen_profile(request)
        if profile is not None:
            await scored_by(store, [experiment.experiment_id], profile)

        async def encode() -> bytes:
            table = await scenario_scores(store, experiment, shown, profile, scenarios)
            return await asyncio.to_thread(to_json, table)

        key = f"scenario-scores {asked_key(experiment.experiment_id, model, dimension, profile)}"
        return ready_response(request, await ready.get(key, encode))

    return [
        ApiEndpoint(
            "/api/scenario-scores",
            score_scenarios,
            "The mean score of each model on each scenario of an experiment",
            ScenarioScores,
            parameters=(EXPERIMENT, PROFILE, MODEL, DIMENSION),
            problems={
                **PROBLEMS,
                404: "There is no such experiment, or none at all",
                422: "A parameter is out of bounds, or names nothing of the experiment",
            },
        )
    ]


def analysis_endpoints(store: ScoreStore, ready: ReadyBytes) -> list[ApiEndpoint]:
    """Return the endpoint, encoded once for each experiment and revision of the store."""

    async def analyse_scenarios(request: Request) -> Response:
        experiment = await experiment_of(store, chosen_experiment(request))
        profile, dimension = chosen_profile(request), chosen_name(request, "dimension")
        shown = {each.id for each in scenarios_of(experiment, dimension)}
        if profile is not None:
            await scored_by(store, [experiment.experiment_id], profile)

        def analysed(table: ScenarioScores) -> bytes:
            return to_json(scenario_analysis(experiment, table).within(shown))

        async def encode() -> bytes:
            table = await scenario_scores(store, experiment, experiment.manifest.models, profile)
            return await asyncio.to_thread(analysed, table)

        key = f"scenarios {asked_key(experiment.experiment_id, profile, dimension)}"
        return ready_response(request, await ready.get(key, encode))

    return [
        ApiEndpoint(
            "/api/scenarios",
            analyse_scenarios,
            "What each scenario asks, how hard it is, and how well it tells models apart",
            ScenarioAnalysis,
            parameters=(EXPERIMENT, PROFILE, DIMENSION),
            problems={**PROBLEMS, 404: "There is no such experiment, or none at all"},
        )
    ]
