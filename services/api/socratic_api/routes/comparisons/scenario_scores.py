"""`/api/scenario-scores`: the mean score of each model on each scenario of an experiment."""

from __future__ import annotations

import json
from typing import Protocol

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import Endpoint
from socratic_api.routes.experiment_choice import (
    PROBLEMS,
    PROFILE,
    chosen_experiment,
    chosen_profile,
)
from socratic_api.routes.runs.detailed_results import EXPERIMENT, MODEL, chosen_id, experiment_of
from socratic_api.routes.runs.run_context import RunStore
from socratic_bench.errors import InvalidInput
from socratic_bench.ports.stores.aggregates import Aggregates
from socratic_bench.reporting.profiles.choice import scored_by
from socratic_bench.reporting.scenarios.scores import ScenarioScores, scenario_scores


class ScoreStore(RunStore, Aggregates, Protocol):
    """The roles of the store with plans and cells."""


def endpoints(store: ScoreStore, ready: ReadyBytes) -> list[Endpoint]:
    """Return the endpoint, encoded once for each experiment and revision of the store."""

    async def score_scenarios(request: Request) -> Response:
        chosen, model = chosen_experiment(request), chosen_id(request, "model")
        experiment = await experiment_of(store, chosen)
        manifest = experiment.manifest
        if model is not None and model not in manifest.models_by_id:
            raise InvalidInput(f"model: the experiment has no model {model!r}")
        models = manifest.models if model is None else (manifest.models_by_id[model],)

        profile = chosen_profile(request)
        if profile is not None:
            await scored_by(store, [experiment.experiment_id], profile)

        async def encode() -> bytes:
            return to_json(await scenario_scores(store, experiment, models, profile))

        key = json.dumps([experiment.experiment_id, model, profile])
        return ready_response(request, await ready.get(f"scenario-scores {key}", encode))

    return [
        Endpoint(
            "/api/scenario-scores",
            score_scenarios,
            "The mean score of each model on each scenario of an experiment",
            ScenarioScores,
            parameters=(EXPERIMENT, PROFILE, MODEL),
            problems={
                **PROBLEMS,
                404: "There is no such experiment, or none at all",
                422: "A parameter is out of bounds, or names nothing of the experiment",
            },
        )
    ]
