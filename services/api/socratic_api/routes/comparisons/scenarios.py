"""`/api/scenarios`: what each scenario asks, how hard it is, and how well it tells models apart."""

from __future__ import annotations

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import Endpoint
from socratic_api.routes.comparisons.scenario_scores import ScoreStore
from socratic_api.routes.experiment_choice import (
    DIMENSION,
    PROBLEMS,
    PROFILE,
    asked_key,
    chosen_experiment,
    chosen_name,
    chosen_profile,
)
from socratic_api.routes.runs.detailed_results import EXPERIMENT, experiment_of
from socratic_bench.reporting.profiles.choice import scored_by
from socratic_bench.reporting.scenarios.analysis import ScenarioAnalysis, scenario_analysis
from socratic_bench.reporting.scenarios.scores import scenario_scores
from socratic_bench.reporting.transcripts.chosen_runs import scenarios_of


def endpoints(store: ScoreStore, ready: ReadyBytes) -> list[Endpoint]:
    """Return the endpoint, encoded once for each experiment and revision of the store."""

    async def analyse_scenarios(request: Request) -> Response:
        experiment = await experiment_of(store, chosen_experiment(request))
        profile, dimension = chosen_profile(request), chosen_name(request, "dimension")
        shown = {each.id for each in scenarios_of(experiment, dimension)}
        if profile is not None:
            await scored_by(store, [experiment.experiment_id], profile)

        async def encode() -> bytes:
            table = await scenario_scores(store, experiment, experiment.manifest.models, profile)
            return to_json(scenario_analysis(experiment, table).within(shown))

        key = f"scenarios {asked_key(experiment.experiment_id, profile, dimension)}"
        return ready_response(request, await ready.get(key, encode))

    return [
        Endpoint(
            "/api/scenarios",
            analyse_scenarios,
            "What each scenario asks, how hard it is, and how well it tells models apart",
            ScenarioAnalysis,
            parameters=(EXPERIMENT, PROFILE, DIMENSION),
            problems={**PROBLEMS, 404: "There is no such experiment, or none at all"},
        )
    ]
