"""The envelope of every event, as CloudEvents 1.0 has it, and the events in the order of a run.

`partitionkey` is CloudEvents' partitioning extension and holds the group of the message (the
model, with a high priority); `correlationid` names the experiment, `causationid` the event that led
to this one.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypedDict, get_args

from pydantic import BaseModel, ConfigDict, FailFast, Field

from socratic_bench.domain.identifiers import content_name
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import NORMAL, RETRIES, Priority, Run, RunFailure, request_group
from socratic_bench.domain.score import ScoredResponse

PREFIX: Final = "org.socratic-bench."
"""The prefix of every type; a kind, such as `run.failed`, and a version follow."""


class Envelope(BaseModel):
    """The attributes of all events. A reader ignores attributes that it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    specversion: Literal["1.0"] = "1.0"
    """The version of CloudEvents."""

    id: str = Field(min_length=1)
    """Names the fact: every service gives the same fact the same id at any time."""

    source: str = Field(min_length=1)
    """The service that published it."""

    subject: str
    """The run or the experiment that the event is about."""

    time: datetime
    """The publisher's time of the fact. Nothing depends on it."""

    datacontenttype: Literal["application/json"] = "application/json"
    """The media type of `data`."""

    partitionkey: str
    """The group of the message: the model's id, in a request of high priority after `high:`;
    `retries` in one to retry a failed run; or the experiment's id."""

    correlationid: str
    """The id of the experiment."""

    causationid: str | None = None
    """The id of the event that led to this one; None: none did."""


class Attributes(TypedDict):
    """The attributes of one event that neither its type nor its data gives."""

    id: str
    source: str
    subject: str
    time: datetime
    partitionkey: str
    correlationid: str
    causationid: str | None


def only_value(literal: Any) -> Any:
    """Return the value of a Literal type with one value."""
    [value] = get_args(literal)
    return value


@lru_cache(maxsize=64)
def kind_of(event_type: str) -> str:
    """Return an event type without prefix and version: `run.failed`."""
    return event_type.removeprefix(PREFIX).rpartition(".")[0]


def about_run(
    event_type: str,
    run: Run,
    *key: str | int,
    source: str,
    time: datetime,
    cause: str | None = None,
) -> Attributes:
    """Return the attributes of a fact about a run; `key` is unique within its type and run."""
    return Attributes(
        id=_event_id(event_type, run.run_id, *key),
        source=source,
        subject=run.run_id,
        time=time,
        partitionkey=run.model_id,
        correlationid=run.experiment_id,
        causationid=cause,
    )


def about_experiment(
    event_type: str, experiment_id: str, *key: str, source: str, time: datetime
) -> Attributes:
    """Return the attributes of a fact about an experiment; `key` is unique within its type."""
    return Attributes(
        id=_event_id(event_type, experiment_id, *key),
        source=source,
        subject=experiment_id,
        time=time,
        partitionkey=experiment_id,
        correlationid=experiment_id,
        causationid=None,
    )


def _event_id(event_type: str, *key: str | int) -> str:
    """Return the id of a fact: its kind and its key, never a time."""
    return "/".join((kind_of(event_type), *map(str, key)))


_RunRequestedType = Literal["org.socratic-bench.run.requested.v1"]
RUN_REQUESTED: Final[_RunRequestedType] = only_value(_RunRequestedType)


class RunRequestedData(BaseModel):
    """The run; the experiment's manifest has the questions."""

    model_config = ConfigDict(frozen=True)

    run: Run
    """The run to carry out."""

    retry: int | None = Field(default=None, ge=1)
    """The number of the request to retry a failed run; None for the plan's own request."""


class RunRequested(Envelope):
    """A planned run is due."""

    type: _RunRequestedType = RUN_REQUESTED
    data: RunRequestedData

    @classmethod
    def of(
        cls,
        run: Run,
        *,
        source: str,
        time: datetime,
        retry: int = 0,
        priority: Priority = NORMAL,
    ) -> RunRequested:
        again = (str(retry),) if retry else ()
        about = about_run(RUN_REQUESTED, run, *again, source=source, time=time)
        about["partitionkey"] = RETRIES if retry else request_group(run.model_id, priority)
        return cls(**about, data=RunRequestedData(run=run, retry=retry or None))


_ResponseRecordedType = Literal["org.socratic-bench.response.recorded.v1"]
RESPONSE_RECORDED: Final[_ResponseRecordedType] = only_value(_ResponseRecordedType)


class ResponseRecorded(Envelope):
    """The store has a tutor's response. The event carries all that a profile reads."""

    type: _ResponseRecordedType = RESPONSE_RECORDED
    data: Response

    @classmethod
    def of(cls, response: Response, *, source: str, cause: str | None = None) -> ResponseRecorded:
        key, time = (response.turn, response.profile), response.recorded_at
        about = about_run(
            RESPONSE_RECORDED, response.run, *key, source=source, time=time, cause=cause
        )
        return cls(**about, data=response)


_ResponseScoredType = Literal["org.socratic-bench.response.scored.v1"]
RESPONSE_SCORED: Final[_ResponseScoredType] = only_value(_ResponseScoredType)


class ResponseScored(Envelope):
    """The judge scored a response, or found it unscorable: unscored is not zero."""

    type: _ResponseScoredType = RESPONSE_SCORED
    data: ScoredResponse

    @classmethod
    def of(
        cls, scored: ScoredResponse, *, source: str, time: datetime, cause: str | None = None
    ) -> ResponseScored:
        key = scored.turn, scored.profile
        about = about_run(RESPONSE_SCORED, scored.run, *key, source=source, time=time, cause=cause)
        return cls(**about, data=scored)


_RunFailedType = Literal["org.socratic-bench.run.failed.v1"]
RUN_FAILED: Final[_RunFailedType] = only_value(_RunFailedType)


class RunFailed(Envelope):
    """A run gave no response after all its tries; an error is never a score."""

    type: _RunFailedType = RUN_FAILED
    data: RunFailure

    @classmethod
    def of(
        cls, failure: RunFailure, *, source: str, time: datetime, cause: str | None = None
    ) -> RunFailed:
        key = failure.turn, failure.profile
        about = about_run(RUN_FAILED, failure.run, *key, source=source, time=time, cause=cause)
        return cls(**about, data=failure)


_AggregateUpdatedType = Literal["org.socratic-bench.aggregate.updated.v1"]
AGGREGATE_UPDATED: Final[_AggregateUpdatedType] = only_value(_AggregateUpdatedType)


class AggregateUpdatedData(BaseModel):
    """The progress of the experiment, and the models of the updated cells."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    """The experiment that the cells belong to."""

    planned: int = Field(ge=0)
    """Runs of the plan."""

    done: int = Field(ge=0)
    """Runs that were scored, found unscorable or failed."""

    failed: int = Field(ge=0)
    """Runs among them that failed."""

    models: Annotated[tuple[str, ...], FailFast()]
    """The ids of the models whose cells changed."""


class AggregateUpdated(Envelope):
    """The curator updated cells of an experiment."""

    type: _AggregateUpdatedType = AGGREGATE_UPDATED
    data: AggregateUpdatedData

    @classmethod
    def of(cls, data: AggregateUpdatedData, *, source: str, time: datetime) -> AggregateUpdated:
        content = content_name("content", data.model_dump(mode="json"))
        about = about_experiment(
            AGGREGATE_UPDATED, data.experiment_id, content, source=source, time=time
        )
        return cls(**about, data=data)


_ExperimentCompletedType = Literal["org.socratic-bench.experiment.completed.v1"]
EXPERIMENT_COMPLETED: Final[_ExperimentCompletedType] = only_value(_ExperimentCompletedType)


class ExperimentCompletedData(BaseModel):
    """The result in runs."""

    model_config = ConfigDict(frozen=True)

    experiment_id: str
    """The experiment that is complete."""

    planned: int = Field(ge=0)
    """Runs of the plan."""

    failed: int = Field(ge=0)
    """Runs among them that failed."""


class ExperimentCompleted(Envelope):
    """Every planned run of an experiment was scored, found unscorable or failed."""

    type: _ExperimentCompletedType = EXPERIMENT_COMPLETED
    data: ExperimentCompletedData

    @classmethod
    def of(
        cls, data: ExperimentCompletedData, *, source: str, time: datetime
    ) -> ExperimentCompleted:
        about = about_experiment(EXPERIMENT_COMPLETED, data.experiment_id, source=source, time=time)
        return cls(**about, data=data)
