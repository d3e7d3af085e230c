"""`/api/interval`: how a 95 % interval comes about, from written scores or those of a model."""

from __future__ import annotations

import re
from typing import Final

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, ReadyBytes, make_ready, ready_response
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.routes.query import (
    PROBLEMS,
    PROFILE,
    asked_key,
    chosen_experiment,
    chosen_name,
    chosen_profile,
)
from socratic_api.routes.runs import EXPERIMENT, MODEL, experiment_of
from socratic_api.routes.scenarios import ScoreStore
from socratic_bench.domain.aggregates.run_scores import VectorScores
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import close_match
from socratic_bench.results.experiment_choice import scored_by
from socratic_bench.results.filters import require_known
from socratic_bench.results.interval_steps import (
    WRITTEN,
    IntervalSteps,
    interval_steps,
    model_scores,
    own_scores,
)
from socratic_bench.scoring.composition import UNKNOWN
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_composition

_LONGEST: Final = 20_000
_FORM: Final = "write the scores of each scenario's runs, such as 0.9 0.8; 0.7 0.9"
_NUMBER: Final = re.compile(r"[0-9]*\.?[0-9]+")

_PARAMETERS: Final = (
    QueryParameter(
        "scores",
        "The scores of each scenario's runs, from 0.0 to 1.0: runs separated by spaces or commas, "
        "scenarios by semicolons or lines. Without them, those of a model of an experiment.",
        {"type": "string", "maxLength": _LONGEST},
    ),
    EXPERIMENT,
    MODEL,
    QueryParameter(
        "vector",
        "The vector whose scores are taken; without it, `overall`.",
        {"type": "string", "maxLength": 200},
    ),
    PROFILE,
)


def endpoints(store: ScoreStore, ready: ReadyBytes) -> list[ApiEndpoint]:
    """Return the endpoint; that of a model is encoded once for each revision of the store."""

    async def explain_interval(request: Request) -> Response:
        scores: str | None = request.query_params.get("scores")
        if scores is not None:
            steps = interval_steps(own_scores(_parsed(scores)), WRITTEN, UNKNOWN)
            return ready_response(request, make_ready(to_json(steps), JSON))
        return await of_a_model(request)

    async def of_a_model(request: Request) -> Response:
        model = chosen_name(request, "model")
        if model is None:
            raise InvalidInput(f"scores: are missing, and so is a model; {_FORM}")
        vector, profile = chosen_name(request, "vector") or OVERALL, chosen_profile(request)
        experiment = await experiment_of(store, chosen_experiment(request))
        id_ = experiment.experiment_id
        require_known("model", model, experiment.manifest.models_by_id, "the experiment has no")
        if profile is not None:
            await scored_by(store, [id_], profile)

        async def encode() -> bytes:
            cells = await store.cells({id_})
            shown = profile or experiment.manifest.profile
            cluster = ExperimentOutline.of(experiment).cluster_of
            return to_json(_of_figure(model_scores(cells, model, shown, cluster), vector, shown))

        key = f"interval {asked_key(id_, model, vector, profile)}"
        return ready_response(request, await ready.get(key, encode))

    return [
        ApiEndpoint(
            "/api/interval",
            explain_interval,
            "How a 95 % interval comes about: each step, from your own scores or those of a model",
            IntervalSteps,
            parameters=_PARAMETERS,
            problems={
                **PROBLEMS,
                404: "There is no such experiment, or none at all",
                422: "A score is no number from 0 to 1, or a parameter names nothing there is",
            },
        )
    ]


def _of_figure(found: VectorScores[str], figure: str, profile: str) -> IntervalSteps:
    if found.vectors and figure not in found.vectors:
        meant = close_match(figure, list(found.vectors))
        remedy = f"; did you mean {meant}?" if meant else f"; there are: {', '.join(found.vectors)}"
        raise InvalidInput(f"vector: the model has no score on {figure!r}{remedy}")
    return interval_steps(found, figure, known_composition(profile))


def _parsed(text: str) -> list[list[float]]:
    """Return the written scores of each scenario. Raises InvalidInput with the place."""
    if len(text) > _LONGEST:
        raise InvalidInput(f"scores: longer than {_LONGEST:,} characters")
    scenarios: list[list[float]] = []
    for part in re.split(r"[;\r\n]+", text):
        words = re.split(r"[\s,]+", part.strip().strip(","))
        if words == [""]:
            continue
        scenarios.append([_score(word, len(scenarios) + 1) for word in words if word])
    if not scenarios:
        raise InvalidInput(f"scores: hold no number; {_FORM}")
    return scenarios


def _score(word: str, scenario: int) -> float:
    value = float(word) if _NUMBER.fullmatch(word) else -1.0
    if not 0 <= value <= 1:
        shown = word if len(word) <= 20 else f"{word[:20]}…"
        raise InvalidInput(
            f"scores, scenario {scenario}: {shown!r} is no number from 0 to 1; {_FORM}"
        )
    return value
