"""`/api/detailed-results`: the runs of an experiment, a page at a time."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, make_ready, ready_response
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.routes.one_run import RunSummary, run_summary
from socratic_api.routes.query import (
    DIMENSION,
    NAME_LIMIT,
    OFFSET_LIMIT,
    PROBLEMS,
    PROFILE,
    chosen_experiment,
    chosen_name,
    chosen_profile,
    next_offset,
    page_of,
    page_within,
    whole_number,
)
from socratic_api.routes.run_context import RunStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import InvalidInput
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.results.leaderboard.selection import ALL, default_experiment
from socratic_bench.results.transcripts import chosen_runs, transcripts_page

_PAGE = 50
_PAGE_LIMIT = 200

EXPERIMENT: Final = QueryParameter(
    "experiment",
    "The id of one experiment, or the start of the id, an occasion or a name that only one has; "
    "without it, the newest experiment of the default leaderboard.",
    {"type": "string", "maxLength": 200},
)

MODEL: Final = QueryParameter(
    "model", "The id of one model.", {"type": "string", "maxLength": NAME_LIMIT}
)

_PARAMETERS: Final = (
    EXPERIMENT,
    PROFILE,
    MODEL,
    DIMENSION,
    QueryParameter(
        "scenario", "The id of one scenario.", {"type": "string", "maxLength": NAME_LIMIT}
    ),
    *page_of(_PAGE, _PAGE_LIMIT),
)


class DetailedResults(BaseModel):
    """Planned runs in the plan's order: models take turns."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    profile: str
    runs: tuple[RunSummary, ...]
    """A run without a turn and without a failure has not ended."""

    total: int
    """The number of all planned runs that the filters leave."""

    offset: int
    next_offset: int | None
    """Where the next page begins; null after the last."""


def endpoints(store: RunStore) -> list[ApiEndpoint]:
    """Return the endpoint of the runs. Runs end all the time, so each request reads the store."""

    async def list_runs(request: Request) -> Response:
        offset = whole_number(request, "offset", default=0, low=0, high=OFFSET_LIMIT)
        limit = whole_number(request, "limit", default=_PAGE, low=1, high=_PAGE_LIMIT)
        experiment = await experiment_of(store, chosen_experiment(request))
        profile = chosen_profile(request)
        model = chosen_name(request, "model")
        chosen = chosen_runs(
            experiment,
            models=() if model is None else (model,),
            scenario=chosen_name(request, "scenario"),
            dimension=chosen_name(request, "dimension"),
        )
        page = await transcripts_page(store, chosen, profile, offset=offset, limit=limit)
        runs = page_within(map(run_summary, page.transcripts))
        results = DetailedResults(
            experiment_id=experiment.experiment_id,
            profile=profile or experiment.manifest.profile,
            runs=runs,
            total=page.total,
            offset=offset,
            next_offset=next_offset(offset, len(runs), page.total),
        )
        return ready_response(request, make_ready(to_json(results), JSON))

    return [
        ApiEndpoint(
            "/api/detailed-results",
            list_runs,
            "The runs of an experiment with their scores, a page at a time",
            DetailedResults,
            parameters=_PARAMETERS,
            problems={
                **PROBLEMS,
                404: "There is no such experiment, or none at all",
                422: "A parameter is out of bounds, or names nothing of the experiment",
            },
        )
    ]


async def experiment_of(store: RunStore, wanted: str | None) -> Experiment:
    """Return one experiment, by default the newest of the leaderboard's default table.

    Raises InvalidInput and UnknownExperiment.
    """
    if wanted == ALL:
        raise InvalidInput("experiment: one, and not `all`: each has runs of its own")
    if wanted is None:
        wanted = (await default_experiment(store)).experiment_id
    return await find_experiment(store, wanted)
