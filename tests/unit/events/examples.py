"""One example of each event, always the same."""

from datetime import UTC, datetime

from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.events.codec import Event
from socratic_bench.events.event_types import (
    AggregateUpdated,
    AggregateUpdatedData,
    ExperimentCompleted,
    ExperimentCompletedData,
    ResponseRecorded,
    ResponseScored,
    RunFailed,
    RunRequested,
)
from socratic_bench.scoring.exchange import EarlierTurn, Status

TIME = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
RUN = Run(
    run_id="run-00112233445566778899aabb",
    experiment_id="exp-0123456789abcdef",
    model_id="reference/socratic",
    scenario_id="ambiguous-growth",
    dimension="ambiguous",
    repeat=2,
)
PLANNED = RUN.model_copy(
    update={"run_id": run_id(RUN.experiment_id, RUN.model_id, RUN.scenario_id, RUN.repeat)}
)
"""The same with the id that a plan gives it today: services refuse others."""

USAGE = Usage(visible_output_tokens=21, reasoning_tokens=3, input_tokens=80)


def example_events() -> dict[str, Event]:
    """One example of each event, by the short name of its type."""
    response = Response(
        run=RUN,
        turn=2,
        last_turn=True,
        profile="socratic-v1",
        student_message="But what should I do?",
        earlier_turns=(EarlierTurn("We don't grow.", "Who is “we”?"),),
        text="What might you consider first?",
        status=Status.OK,
        usage=USAGE,
        latency_ms=120,
        cost_nanodollars=4_200,
        stop_reason="stop",
        model_version="reference-1",
        attempts=1,
        recorded_at=TIME,
    )
    scored = ScoredResponse(
        run=RUN,
        turn=2,
        last_turn=True,
        profile="socratic-v1",
        status=Status.OK,
        vectors={"verbosity": 0.958, "exploratory": 1.0, "interrogative": 1.0},
        overall=0.986,
        usage=USAGE,
        latency_ms=120,
        cost_nanodollars=4_200,
    )
    failure = RunFailure(
        run=RUN,
        turn=1,
        profile="socratic-v1",
        kind="rate_limited",
        message="429: slow down",
        attempts=4,
    )
    updated = AggregateUpdatedData(
        experiment_id=RUN.experiment_id,
        planned=45,
        done=12,
        failed=1,
        models=(RUN.model_id,),
    )
    completed = ExperimentCompletedData(experiment_id=RUN.experiment_id, planned=45, failed=1)
    runner, judge, curator = "socratic-runner", "socratic-judge", "socratic-curator"
    cause = "run.requested/run-00112233445566778899aabb"
    return {
        "run.requested": RunRequested.of(RUN, source="socratic-planner", time=TIME),
        "response.recorded": ResponseRecorded.of(response, source=runner, cause=cause),
        "response.scored": ResponseScored.of(scored, source=judge, time=TIME, cause=cause),
        "run.failed": RunFailed.of(failure, source=runner, time=TIME, cause=cause),
        "aggregate.updated": AggregateUpdated.of(updated, source=curator, time=TIME),
        "experiment.completed": ExperimentCompleted.of(completed, source=curator, time=TIME),
    }
