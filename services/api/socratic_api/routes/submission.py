"""`POST /api/experiments`: has the services carry out a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, RootModel
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON
from socratic_api.background_tasks import LARGEST_CONFIG, Plan, Submissions
from socratic_api.endpoints import ApiEndpoint, QueryParameter
from socratic_api.http.bodies import read_body, require_json
from socratic_api.routes.query import flag
from socratic_bench.planning.model_catalogue import endpoints_to_list
from socratic_bench.results.costs import usd

if TYPE_CHECKING:
    from socratic_bench.planning.config_file.config import BenchmarkConfig

_PARAMETERS: Final = (
    QueryParameter(
        "retry_failed",
        "Whether to request failed runs once more.",
        {"type": "boolean", "default": False},
    ),
    QueryParameter(
        "fresh",
        "Whether to reuse no answers of other experiments.",
        {"type": "boolean", "default": False},
    ),
)


class SubmittedConfig(RootModel[dict[str, Any]]):
    """A configuration, as `socratic-bench submit` reads it, which names no file."""


class Submission(BaseModel):
    """An experiment that the services carry out. Runs are counted as `submit --json` does."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    manifest_id: str
    planned: int
    already_done: int | None
    """Runs that are done; null while planning goes on, as the next two."""

    answered: int | None
    """Runs with stored answers, which wait for their scores."""

    requested: int | None
    """Runs requested from the services."""

    reused: int | None
    """Runs whose answers come from other experiments; null while they are looked for."""

    likely_cost_usd: float | None
    """The likely cost of the runs to ask; null where no price is known."""

    most_cost_usd: float | None
    """The cost if every answer has its greatest length and no call is repeated."""

    notes: list[str]
    """Facts that need a person's attention, such as an address that the runner's operator must
    list."""

    @classmethod
    def of(cls, plan: Plan, config: BenchmarkConfig) -> Submission:
        """Report a plan as far as it is."""
        experiment, counts, prospect = plan.experiment, plan.counts, plan.prospect
        cost = None if prospect is None else prospect.estimate.cost
        return cls(
            experiment_id=experiment.experiment_id,
            manifest_id=experiment.manifest.manifest_id,
            planned=experiment.manifest.planned_runs,
            already_done=None if counts is None else counts.already_done,
            answered=None if counts is None else counts.answered,
            requested=None if counts is None else counts.requested,
            reused=None if prospect is None else prospect.outlook.reused,
            likely_cost_usd=None if cost is None else usd(cost.likely),
            most_cost_usd=None if cost is None else usd(cost.at_most),
            notes=[*config.notes, *endpoints_to_list(config)],
        )


def endpoints(submissions: Submissions) -> list[ApiEndpoint]:
    """Return the endpoint of submissions."""

    async def submit_experiment(request: Request) -> Response:
        retry_failed, fresh = flag(request, "retry_failed"), flag(request, "fresh")
        require_json(request)
        config = await submissions.read(await read_body(request, LARGEST_CONFIG))
        plan = await submissions.submit(config, retry_failed=retry_failed, fresh=fresh)
        answer = Submission.of(plan, config)
        location = f"/api/experiments/{answer.experiment_id}"
        return Response(to_json(answer), 202, {"Location": location}, JSON)

    return [
        ApiEndpoint(
            "/api/experiments",
            submit_experiment,
            "Have the services carry out a benchmark, and name the experiment",
            Submission,
            method="POST",
            status=202,
            description="The body is a configuration as JSON. The same request again requests only "
            "the missing runs. A configuration names no file, and no variable of a key reaches the "
            "plan; the runner calls other addresses than a provider's own only if its operator "
            "lists them. Where the service has keys, it takes one: `Authorization: Bearer KEY`.",
            parameters=_PARAMETERS,
            accepts=SubmittedConfig,
            problems={
                401: "The key is missing or not known",
                403: "A page of another site asked",
                408: "The body did not arrive in time",
                409: "The API has no broker, or the experiment is stopped or being planned",
                413: f"The body is larger than {LARGEST_CONFIG:,} bytes",
                415: "The body is not said to be JSON",
                422: "The configuration has mistakes; `mistakes` lists them with their places",
                503: "The store or the broker does not answer, or many others are being planned",
            },
        )
    ]
