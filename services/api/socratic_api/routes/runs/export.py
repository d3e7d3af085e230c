"""`/api/export`: a table of an experiment, as a stream of records."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from socratic_api.endpoints import Endpoint, QueryParameter
from socratic_api.routes.experiment_choice import (
    DIMENSION,
    MODELS,
    PROBLEMS,
    PROFILE,
    chosen_experiment,
    chosen_models,
    chosen_name,
    chosen_profile,
)
from socratic_api.routes.runs.detailed_results import EXPERIMENT, experiment_of
from socratic_api.routes.runs.run_context import RunStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import InvalidInput
from socratic_bench.reporting.export.formats import FORMATS
from socratic_bench.reporting.export.tables import TABLES, open_table
from socratic_bench.reporting.export.writing import file_pieces
from socratic_bench.reporting.transcripts.chosen_runs import chosen_runs

_RESPONSES: Final = "responses"
_JSON_LINES: Final = "jsonl"

_TABLE: Final = QueryParameter(
    "table",
    "What a record is: a scored response, a scenario, or a turn without scores.",
    {"type": "string", "enum": list(TABLES), "default": _RESPONSES},
)
_FORMAT: Final = QueryParameter(
    "format",
    "The same bytes as `socratic-bench export --format` writes.",
    {"type": "string", "enum": list(FORMATS), "default": _JSON_LINES},
)


def endpoints(store: RunStore) -> list[Endpoint]:
    """Return the endpoint. It sends records as it reads them, so its memory stays flat."""

    async def export_table(request: Request) -> Response:
        what = _one_of(request, "table", TABLES, _RESPONSES)
        output = _one_of(request, "format", FORMATS, _JSON_LINES)
        experiment = await experiment_of(store, chosen_experiment(request))
        models, dimension = chosen_models(request), chosen_name(request, "dimension")
        # Before the answer begins: a stream cannot refuse.
        chosen = chosen_runs(experiment, models=models, dimension=dimension)
        table = await open_table(what, store, chosen, chosen_profile(request))
        name = file_name(experiment, what, output, is_whole=not models and dimension is None)
        return StreamingResponse(
            file_pieces(table, output),
            media_type=FORMATS[output].media_type,
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    return [
        Endpoint(
            "/api/export",
            export_table,
            "The scored responses of an experiment, or another table, as a file",
            FORMATS[_JSON_LINES].media_type,
            also=tuple(each.media_type for each in FORMATS.values())[1:],
            parameters=(EXPERIMENT, PROFILE, MODELS, DIMENSION, _TABLE, _FORMAT),
            problems={
                **PROBLEMS,
                404: "There is no such experiment, or none at all",
                422: "A parameter has no such value, or names what the experiment does not have",
            },
        )
    ]


def file_name(experiment: Experiment, what: str, output: str, *, is_whole: bool) -> str:
    """Return the name that a browser saves the file under."""
    of_table = "" if what == _RESPONSES else f"-{what}"
    filtered = "" if is_whole else "-filtered"
    return f"{experiment.experiment_id}{of_table}{filtered}.{output}"


def _one_of(request: Request, name: str, known: Collection[str], usual: str) -> str:
    wanted = request.query_params.get(name, usual)
    if wanted not in known:
        raise InvalidInput(f"{name}: must be one of {', '.join(known)}, not {wanted!r}")
    return wanted
