"""`/api/export`: the scored responses of an experiment, as a stream of records."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from socratic_api.endpoints import Endpoint, QueryParameter
from socratic_api.routes.experiment_choice import (
    PROBLEMS,
    PROFILE,
    chosen_experiment,
    chosen_profile,
)
from socratic_api.routes.runs.detailed_results import EXPERIMENT, experiment_of
from socratic_api.routes.runs.run_context import RunStore
from socratic_bench.errors import InvalidInput
from socratic_bench.reporting.profiles.choice import scored_by
from socratic_bench.reporting.transcripts.records import FORMATS, records

JSON_LINES: Final = "application/x-ndjson"
_MEDIA_TYPES: Final = {"jsonl": JSON_LINES, "csv": "text/csv; charset=utf-8"}

_FORMAT: Final = QueryParameter(
    "format",
    "The same bytes as `socratic-bench export --format` writes.",
    {"type": "string", "enum": list(FORMATS), "default": "jsonl"},
)


def endpoints(store: RunStore) -> list[Endpoint]:
    """Return the endpoint. It sends records as it reads them, so its memory stays flat."""

    async def export_responses(request: Request) -> Response:
        wanted = request.query_params.get("format", "jsonl")
        if wanted not in FORMATS:
            raise InvalidInput(f"format: must be one of {', '.join(FORMATS)}, not {wanted!r}")
        experiment = await experiment_of(store, chosen_experiment(request))
        profile = chosen_profile(request)
        if profile is not None:
            # Before the answer begins: a stream cannot refuse.
            await scored_by(store, [experiment.experiment_id], profile)
        name = f"{experiment.experiment_id}.{wanted}"
        return StreamingResponse(
            FORMATS[wanted](records(store, experiment, profile)),
            media_type=_MEDIA_TYPES[wanted],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    return [
        Endpoint(
            "/api/export",
            export_responses,
            "The scored responses of an experiment, a record each, as JSON lines or CSV",
            JSON_LINES,
            also=_MEDIA_TYPES["csv"],
            parameters=(EXPERIMENT, PROFILE, _FORMAT),
            problems={
                **PROBLEMS,
                404: "There is no such experiment, or none at all",
                422: "A parameter has no such value, or the experiment has no score by the profile",
            },
        )
    ]
