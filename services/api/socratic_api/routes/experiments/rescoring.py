"""`POST …/rescore` of an experiment: has stored responses scored by another profile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON
from socratic_api.control.capabilities import Capabilities
from socratic_api.endpoints import Endpoint
from socratic_api.http.bodies import read_body, require_json
from socratic_api.routes.experiments.one_experiment import PATH, named_in
from socratic_api.routes.paging import OFFSET_LIMIT
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.errors import BrokerUnavailable, InvalidInput
from socratic_bench.events.codec import Event
from socratic_bench.events.message import to_message
from socratic_bench.invalid_values import mistakes_in
from socratic_bench.planning.plan import StorePatience
from socratic_bench.planning.rescoring import RescoreStore, Rescoring
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.scoring.profiles import profile_named

RUNS_A_CALL: Final = 1_000
"""The most planned runs that one request looks at."""

SECONDS: Final = 30.0
"""Seconds that a request may take."""

_BODY_LIMIT: Final = 10_000
SOURCE: Final = "socratic-api"


class RescoreRequest(BaseModel):
    """The profile to score by."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: Annotated[str, Field(min_length=1, max_length=200)]
    offset: Annotated[int, Field(ge=0, le=OFFSET_LIMIT)] = 0
    """The first planned run to look at: 0, and then `next_offset` of the answer before."""


class RescoreAnswer(BaseModel):
    """What was published for scoring; the scores follow."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    profile: str
    runs: int
    """Runs with something to score."""

    responses: int
    failures: int
    """Failed runs, which count in the coverage under every profile."""

    already_scored: int
    """Runs that had their scores by the profile before."""

    next_offset: int | None
    """Where the next request goes on; null after the last run of the plan."""


def endpoints(store: RescoreStore, capabilities: Capabilities, clock: Clock) -> list[Endpoint]:
    """Return the endpoint. It publishes to the broker of the `capabilities`."""

    async def rescore_experiment(request: Request) -> Response:
        require_json(request)
        wanted, asked = named_in(request), _asked(await read_body(request, _BODY_LIMIT))
        broker = capabilities.require_scoring(f"rescore {wanted} --profile {asked.profile}")
        try:
            async with asyncio.timeout(SECONDS):
                answer = await _rescore(broker, wanted, asked)
        except TimeoutError:
            raise BrokerUnavailable(f"the broker was silent for {SECONDS:g} seconds") from None
        return Response(to_json(answer), media_type=JSON)

    async def _rescore(broker: Broker, wanted: str, asked: RescoreRequest) -> RescoreAnswer:
        experiment = await find_experiment(store, wanted)
        profile_named(asked.profile)
        await broker.declare(WORK_QUEUES, BROADCASTS)

        async def publish(events: Sequence[Event]) -> None:
            await broker.publish([to_message(event) for event in events])

        rescoring = Rescoring(
            experiment,
            asked.profile,
            store,
            publish,
            clock,
            SOURCE,
            StorePatience(RetryPolicy(attempts=1)),
        )
        counts = await rescoring.request(asked.offset, RUNS_A_CALL)
        end = asked.offset + RUNS_A_CALL
        return RescoreAnswer(
            experiment_id=experiment.experiment_id,
            profile=asked.profile,
            **asdict(counts),
            next_offset=end if end < experiment.manifest.planned_runs else None,
        )

    return [
        Endpoint(
            f"{PATH}/rescore",
            rescore_experiment,
            "Have the stored responses of an experiment scored by another profile",
            RescoreAnswer,
            method="POST",
            description="Publishes the stored responses of up to 1,000 runs for the judge, and "
            "calls no model. The scores stand beside those by other profiles; each counts once, "
            "however often it is requested. Send `next_offset` as `offset` until it is null. Where "
            "the service has keys, it takes one: `Authorization: Bearer KEY`.",
            accepts=RescoreRequest,
            problems={
                400: "Several experiments could be meant; the detail names them",
                401: "The key is missing or not known",
                403: "A page of another site asked",
                404: "There is no such experiment",
                408: "The body did not arrive in time",
                409: "This API has no broker",
                413: f"The body is larger than {_BODY_LIMIT:,} bytes",
                415: "The body is not said to be JSON",
                422: "The body names no profile, or an unknown one",
                503: "The store or the broker does not answer",
            },
        )
    ]


def _asked(body: bytes) -> RescoreRequest:
    try:
        return RescoreRequest.model_validate_json(body)
    except ValidationError as error:
        raise InvalidInput(mistakes_in(error, RescoreRequest, shows_values=True)) from None
