"""`/api/export`: a table of an experiment, as a stream of records or as a link to a file."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from socratic_api.control.capabilities import Capabilities
from socratic_api.endpoints import Endpoint, QueryParameter
from socratic_api.http.problems import RETRY_SECONDS
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
from socratic_api.routes.paging import whole_number
from socratic_api.routes.runs.detailed_results import EXPERIMENT, experiment_of
from socratic_api.routes.runs.run_context import RunStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import InvalidInput
from socratic_bench.reporting.export.export_files import ExportProgress, ExportRequest
from socratic_bench.reporting.export.formats import FORMATS
from socratic_bench.reporting.export.tables import TABLES, open_table
from socratic_bench.reporting.export.writing import file_pieces
from socratic_bench.reporting.transcripts.chosen_runs import chosen_runs

_RESPONSES: Final = "responses"
_JSON_LINES: Final = "jsonl"

MOST_CONTINUED: Final = 15
"""The most times that an unfinished export leads to itself: browsers follow 20 redirects."""

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
_CONTINUED: Final = QueryParameter(
    "continued",
    "How many answers have led here: an answer that leads to this address again sets it.",
    {"type": "integer", "minimum": 0, "maximum": MOST_CONTINUED, "default": 0},
)


def endpoints(store: RunStore, capabilities: Capabilities) -> list[Endpoint]:
    """Return the endpoint. It sends records as it reads them, so its memory stays flat.

    Where the capabilities have files for exports, it writes one and leads to it.
    """

    async def export_table(request: Request) -> Response:
        what = _one_of(request, "table", TABLES, _RESPONSES)
        output = _one_of(request, "format", FORMATS, _JSON_LINES)
        continued = whole_number(request, "continued", default=0, low=0, high=MOST_CONTINUED)
        profile = chosen_profile(request)
        experiment = await experiment_of(store, chosen_experiment(request))
        models, dimension = chosen_models(request), chosen_name(request, "dimension")
        # Before the answer begins: a stream cannot refuse.
        chosen = chosen_runs(experiment, models=models, dimension=dimension)
        table = await open_table(what, store, chosen, profile)
        name = file_name(experiment, what, output, is_whole=not models and dimension is None)
        if capabilities.exports is not None:
            wanted = ExportRequest(chosen, what, profile, output, name)
            progress = await capabilities.exports.write(wanted, table, await store.revision())
            return _elsewhere(request, wanted, progress, continued)
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
            parameters=(EXPERIMENT, PROFILE, MODELS, DIMENSION, _TABLE, _FORMAT, _CONTINUED),
            elsewhere="Where an answer has to be whole, as on Lambda: the address of the file, for "
            "some minutes, or this one while the file is being written",
            problems={
                **PROBLEMS,
                503: "The store does not answer, or the file takes long: the same request goes on",
                404: "There is no such experiment, or none at all",
                422: "A parameter has no such value, or names what the experiment does not have",
            },
        )
    ]


def _elsewhere(
    request: Request, wanted: ExportRequest, progress: ExportProgress, continued: int
) -> Response:
    """Lead to the file, or to the request that goes on with it, which names the experiment."""
    experiment_id = wanted.chosen.experiment.experiment_id
    address = progress.link
    if address is None:
        if continued >= MOST_CONTINUED:
            raise HTTPException(
                503,
                f"{progress.places:,} of {progress.of:,} runs are written: the same request goes "
                f"on from there, as `curl --retry` does; or use the command, `socratic-bench "
                f"export {experiment_id}`",
                {"Retry-After": RETRY_SECONDS},
            )
        changed = {"experiment": experiment_id, "continued": str(continued + 1)}
        kept = [each for each in request.query_params.multi_items() if each[0] not in changed]
        address = f"export?{urlencode([*kept, *changed.items()])}"
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


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
