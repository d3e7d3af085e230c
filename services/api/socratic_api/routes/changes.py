"""Changes of one experiment: pause, resume, cancel, delete, rescore."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON
from socratic_api.background_tasks import Deletions
from socratic_api.capabilities import Capabilities, Prepare
from socratic_api.endpoints import ApiEndpoint
from socratic_api.http.bodies import read_body, require_json
from socratic_api.http.problems import Conflict
from socratic_api.routes.experiments import PATH, named_in
from socratic_api.routes.query import OFFSET_LIMIT
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.queues import BROADCASTS, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.errors import BrokerUnavailable, InvalidInput, UnknownExperiment
from socratic_bench.events.codec import Event, to_message
from socratic_bench.invalid_values import mistakes_in
from socratic_bench.planning.plan import StorePatience
from socratic_bench.planning.rescoring import RescoreStore, Rescoring
from socratic_bench.ports.broker import Broker
from socratic_bench.ports.clock import Clock
from socratic_bench.ports.stores.experiments import Experiments
from socratic_bench.results.experiment_choice import find_experiment
from socratic_bench.scoring.profiles import profile_named

_BODY_LIMIT: Final = 1_000
_COMMANDS: Final = {
    ExperimentState.PAUSED: "pause",
    ExperimentState.RESUMED: "resume",
    ExperimentState.CANCELLED: "cancel",
}
_PROBLEMS: Final = {
    401: "The key is missing or not known",
    403: "A page of another site asked",
    404: "There is no experiment with this id",
    409: "Its state does not allow it, or this API only reads",
    503: "The store does not answer",
}


class NewState(StrEnum):
    """The states that a person may give an experiment."""

    PAUSED = "paused"
    """No call begins until it is resumed."""

    RESUMED = "resumed"
    CANCELLED = "cancelled"


class StateChange(BaseModel):
    """The body that changes the state of an experiment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: NewState


class ChangedState(BaseModel):
    """The state of an experiment after a change."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    state: ExperimentState
    """`resumed` becomes `open` once the services have requested its runs again."""


class Deleted(BaseModel):
    """A deleted experiment."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    rows: int
    """The rows removed so far."""

    rows_left: bool
    """Whether more are being removed."""


def change_endpoints(
    store: Experiments, prepare: Prepare, capabilities: Capabilities, deletions: Deletions
) -> list[ApiEndpoint]:
    """Return the endpoints that change one experiment, named by its whole id."""

    async def change_experiment(request: Request) -> Response:
        require_json(request)
        to = ExperimentState(_change_in(await read_body(request, _BODY_LIMIT)).state)
        wanted = named_in(request)
        capabilities.require_writing(f"{_COMMANDS[to]} {wanted}")
        experiment = await _known(store, wanted)
        if experiment is None:
            raise Conflict(stopped_sentence(wanted, ExperimentState.DELETED))
        await prepare()
        state = await store.change_state(wanted, to)
        if not (state is to or (to is ExperimentState.RESUMED and state.calls_may_begin)):
            raise Conflict(f"nothing was changed: {stopped_sentence(wanted, state)}")
        return Response(to_json(ChangedState(experiment_id=wanted, state=state)), media_type=JSON)

    async def delete_experiment(request: Request) -> Response:
        wanted = named_in(request)
        capabilities.require_writing(f"delete {wanted}")
        deletion = await deletions.delete(wanted, await _known(store, wanted))
        answer = Deleted(experiment_id=wanted, rows=deletion.rows, rows_left=not deletion.done)
        return Response(to_json(answer), media_type=JSON)

    return [
        ApiEndpoint(
            PATH,
            change_experiment,
            "Pause, resume or cancel an experiment, named by its whole id",
            ChangedState,
            method="PATCH",
            description="Calls in flight finish, and their responses are stored, scored and shown.",
            accepts=StateChange,
            problems={
                **_PROBLEMS,
                408: "The body did not arrive in time",
                413: f"The body is larger than {_BODY_LIMIT:,} bytes",
                415: "The body is not said to be JSON",
                422: "The body names no such state",
            },
        ),
        ApiEndpoint(
            PATH,
            delete_experiment,
            "Delete an experiment, named by its whole id, with all its results, for good",
            Deleted,
            method="DELETE",
            description="It disappears at once; the rows of a large one are removed after the "
            "answer. A second request continues an interrupted deletion.",
            problems=_PROBLEMS,
        ),
    ]


def _change_in(body: bytes) -> StateChange:
    try:
        return StateChange.model_validate_json(body)
    except ValidationError as error:
        problem = mistakes_in(error, StateChange, shows_values=False)
        raise InvalidInput(f"body: {problem}") from None


async def _known(store: Experiments, experiment_id: str) -> Experiment | None:
    """Return an experiment; None for a deleted one. Raises UnknownExperiment."""
    if found := await store.experiment(experiment_id):
        return found
    if experiment_id in await store.states([experiment_id]):
        return None
    raise UnknownExperiment(
        f"there is no experiment with the id {experiment_id!r}: to change one, write its whole id"
    )


RUNS_A_CALL: Final = 1_000
"""The most planned runs that one request looks at."""

SECONDS: Final = 30.0
"""Seconds that a request may take."""

_RESCORE_BODY_LIMIT: Final = 10_000
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


def rescore_endpoints(
    store: RescoreStore, capabilities: Capabilities, clock: Clock
) -> list[ApiEndpoint]:
    """Return the endpoint. It publishes to the broker of the `capabilities`."""

    async def rescore_experiment(request: Request) -> Response:
        require_json(request)
        wanted, asked = named_in(request), _asked(await read_body(request, _RESCORE_BODY_LIMIT))
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
        ApiEndpoint(
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
                413: f"The body is larger than {_RESCORE_BODY_LIMIT:,} bytes",
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
