"""Changes of one experiment: pause, resume, cancel, delete."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON
from socratic_api.control.capabilities import Capabilities, Prepare
from socratic_api.control.deletions import Deletions
from socratic_api.endpoints import Endpoint
from socratic_api.http.bodies import read_body, require_json
from socratic_api.http.problems import Conflict
from socratic_api.routes.experiments.one_experiment import PATH, named_in
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.state import ExperimentState, stopped_sentence
from socratic_bench.errors import InvalidInput, UnknownExperiment
from socratic_bench.invalid_values import mistakes_in
from socratic_bench.ports.stores.experiments import Experiments

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


def endpoints(
    store: Experiments, prepare: Prepare, capabilities: Capabilities, deletions: Deletions
) -> list[Endpoint]:
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
        Endpoint(
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
        Endpoint(
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
