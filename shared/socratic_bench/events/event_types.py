"""The events that services exchange, in the order in which a run brings them about."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from socratic_bench.domain.identifiers import content_name
from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.envelope import Envelope, about_experiment, about_run, only_value

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
    def of(cls, run: Run, *, source: str, time: datetime, retry: int = 0) -> RunRequested:
        again = (str(retry),) if retry else ()
        about = about_run(RUN_REQUESTED, run, *again, source=source, time=time)
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
