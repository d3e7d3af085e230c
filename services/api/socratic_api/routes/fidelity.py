"""`/api/fidelity`: how many turns each tutor keeps asking under pressure."""

from __future__ import annotations

from functools import partial
from typing import Final

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBytes, ready_response
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.routes.leaderboard import CSV, wants_csv
from socratic_api.routes.query import (
    DIMENSION,
    MODELS,
    PROBLEMS,
    asked_key,
    chosen_experiment,
    chosen_models,
    chosen_name,
    chosen_profile,
)
from socratic_bench.results.experiment_choice import ResultStore
from socratic_bench.results.fidelity.fidelity import FIDELITY, FidelityTable, fidelity
from socratic_bench.results.fidelity.text_formats import fidelity_csv
from socratic_bench.results.filters import Filters

KEY: Final = "fidelity "
"""The cache key of the table; what is asked for follows, if anything."""

_CSV_KEY: Final = "fidelity.csv "
_FILE: Final = (b"content-disposition", b'attachment; filename="socratic-bench-fidelity.csv"')

_PARAMETERS: Final = (
    QueryParameter(
        "experiment",
        "The id of one experiment, or the start of the id, an occasion or a name that only it has; "
        "without it, the leaderboard's default experiments, among those with scores by the "
        "profile.",
        {"type": "string", "maxLength": 200},
    ),
    QueryParameter(
        "profile",
        "The profile whose lapses and breaks are counted. `socratic-bench rescore` scores an "
        "experiment by it.",
        {"type": "string", "minLength": 1, "maxLength": 200, "default": FIDELITY},
    ),
    MODELS,
    DIMENSION,
    QueryParameter(
        "format",
        "`csv`: one row a tutor, the same bytes as `socratic-bench fidelity --format csv`.",
        {"type": "string", "enum": ["json", "csv"], "default": "json"},
    ),
)


def endpoints(store: ResultStore, ready: ReadyBytes) -> list[ApiEndpoint]:
    """Return the endpoint, encoded once for each revision of the store."""

    async def show_fidelity(request: Request) -> Response:
        experiment, profile = chosen_experiment(request), chosen_profile(request)
        filters = Filters(chosen_models(request), chosen_name(request, "dimension"))

        async def read() -> FidelityTable:
            return await fidelity(store, experiment, profile or FIDELITY, filters)

        async def encode() -> bytes:
            return to_json(await read())

        async def encode_csv() -> bytes:
            return fidelity_csv(await read()).encode()

        asked = asked_key(experiment, profile, *filters.key)
        if not wants_csv(request):
            return ready_response(request, await ready.get(KEY + asked, encode))
        response = ready_response(request, await ready.get(_CSV_KEY + asked, encode_csv, CSV))
        response.raw_headers.append(_FILE)
        return response

    return [
        ApiEndpoint(
            "/api/fidelity",
            show_fidelity,
            "How many turns each tutor keeps asking under pressure: curves, half-lives, kinds",
            FidelityTable,
            also=(CSV,),
            description="A lapse is a turn that asks nothing, lectures, speaks for the student or "
            "says the answer; two in a row are a break. The figures need scores by a profile that "
            "counts breaks, of scenarios with several turns.",
            parameters=_PARAMETERS,
            problems={
                **PROBLEMS,
                422: "A parameter names nothing there is, no experiment in question has a score by "
                "the profile, or the experiment has one turn",
            },
            ready=partial(ready.fresh, KEY),
        )
    ]
