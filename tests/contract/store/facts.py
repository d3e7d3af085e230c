"""Experiments, responses, scores and failures as a benchmark makes them, said briefly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from socratic_bench.domain.aggregates.cell import Cell, CellKey, fold
from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Grader,
    Manifest,
    StopWhen,
    TutorModel,
)
from socratic_bench.domain.grading import grading_run_id
from socratic_bench.domain.identifiers import run_id
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.run import Priority, Run, RunFailure
from socratic_bench.domain.scenario import DIMENSIONS, Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.leases import Lease, LeaseKey
from socratic_bench.ports.stores.responses import NO_LEASE, Responses
from socratic_bench.ports.stores.store import Store
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL

MONDAY = datetime(2026, 3, 2, 9, 30, 0, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EXPERIMENT_ID = "exp-0123456789abcdef"


def an_experiment(
    *,
    models: int = 2,
    scenarios: int = 3,
    repeats: int = 2,
    follow_ups: Sequence[str] = (),
    occasion: str | None = None,
    created_at: datetime = MONDAY,
    budget: int | None = None,
    priority: Priority = "normal",
) -> Experiment:
    """A planned experiment, just created; its budget is in nanodollars."""
    return Experiment(
        manifest=Manifest(
            models=tuple(TutorModel(id=f"reference/tutor-{number}") for number in range(models)),
            scenarios=tuple(
                Scenario(
                    id=f"scenario-{number}",
                    dimension=DIMENSIONS[number % len(DIMENSIONS)],
                    prompt=f"Question {number}: what should I do?",
                    follow_ups=tuple(follow_ups),
                )
                for number in range(scenarios)
            ),
            repeats=repeats,
            budget=None if budget is None else Decimal(budget).scaleb(-9),
            priority=priority,
        ),
        occasion=occasion,
        created_at=created_at,
    )


GRADER = Grader(model=TutorModel(id="vllm/grader", base_url="http://127.0.0.1:8000/v1"))
GRADED = "socratic-v1-llm"


def with_grader(
    experiment: Experiment, grader: Grader = GRADER, created_at: datetime = MONDAY
) -> Experiment:
    """The same experiment with a grader, which makes it another one."""
    fields = experiment.manifest.model_dump() | {"profile": GRADED, "use_llm_exploratory": grader}
    return Experiment(manifest=Manifest.model_validate(fields), created_at=created_at)


def a_grading(
    experiment: Experiment, text: str, reply: str = "7", cost: int | None = 500
) -> Response:
    """The grading of a text for an experiment, as the runner stores it."""
    run = Run(
        run_id=grading_run_id(experiment.experiment_id, text),
        experiment_id=experiment.experiment_id,
        model_id=GRADER.model.id,
        scenario_id=GRADER.rubric,
        dimension="grading",
        repeat=1,
    )
    return a_response(run, reply, cost=cost).model_copy(update={"profile": GRADER.rubric})


def a_run(
    repeat: int = 1, *, model: str = "reference/tutor-0", scenario: str = "scenario-0"
) -> Run:
    """A run of an experiment that needs no registration."""
    return Run(
        run_id=run_id(EXPERIMENT_ID, model, scenario, repeat),
        experiment_id=EXPERIMENT_ID,
        model_id=model,
        scenario_id=scenario,
        dimension="ambiguous",
        repeat=repeat,
    )


async def record_unleased(store: Responses, responses: Sequence[Response]) -> Sequence[Response]:
    """Store responses that no call under a lease gave."""
    return await store.record(responses, [NO_LEASE] * len(responses))


def a_response(
    run: Run,
    text: str = "What would you try first?",
    *,
    turn: int = 1,
    last_turn: bool = True,
    cost: int | None = 21_000,
) -> Response:
    """A tutor's response, with everything that a provider reports."""
    return Response(
        run=run,
        turn=turn,
        last_turn=last_turn,
        profile=CANONICAL,
        student_message="My startup is not growing. What should I do?",
        text=text,
        status=Status.OK,
        usage=Usage(visible_output_tokens=12, reasoning_tokens=3, input_tokens=80),
        latency_ms=740,
        cost_nanodollars=cost,
        stop_reason="end_turn",
        model_version="tutor-2026-01",
        recorded_at=MONDAY,
    )


def a_conversation(run: Run, turns: int = 12, words: int = 20) -> list[Response]:
    """The responses of a run of many turns, each with all turns before it, as a runner has them."""
    responses: list[Response] = []
    for turn in range(1, turns + 1):
        response = a_response(
            run, f"Turn {turn}: " + "what if? " * words, turn=turn, last_turn=turn == turns
        )
        earlier = tuple(each.as_earlier_turn for each in responses)
        responses.append(response.model_copy(update={"earlier_turns": earlier}))
    return responses


def claim_of(
    run: Run, lease_id: str, reserve: int = 0, *, turn: int = 1, seconds: float = 60
) -> Lease:
    """A lease of a turn, for a minute by default."""
    lease = LeaseKey(run.experiment_id, run.run_id, turn, lease_id)
    return Lease(lease, seconds, reserve)


class StoppedClock:
    """Tells the time that it is set to, MONDAY at first."""

    def __init__(self) -> None:
        self.time = MONDAY

    def __call__(self) -> datetime:
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def a_score(
    run: Run,
    *,
    turn: int = 1,
    last_turn: bool = True,
    overall: float = 0.75,
    profile: str = CANONICAL,
    counts: Mapping[str, int] | None = None,
) -> ScoredResponse:
    """A response that was scored."""
    return ScoredResponse(
        run=run,
        turn=turn,
        last_turn=last_turn,
        profile=profile,
        status=Status.OK,
        vectors={"verbosity": 0.976, "exploratory": overall / 3, "interrogative": 1.0},
        overall=overall,
        counts=dict(counts or {}),
        usage=Usage(visible_output_tokens=12, reasoning_tokens=3, input_tokens=80),
        latency_ms=740,
        cost_nanodollars=21_000,
    )


WAVERING: Final = ("HHL", "LLH", "HLH", "HLL", "HLH")
"""High and low scores of three repeats in each of five scenarios: after two of them the interval
reaches farther than ± 0.2, after three not as far."""


def that_wavers(**options: Any) -> Experiment:
    """An experiment of five scenarios that stops at an interval of ± 0.2, after five repeats at
    the latest."""
    experiment = an_experiment(scenarios=len(WAVERING), repeats=5, **options)
    fields = experiment.manifest.model_dump() | {"stop_when": StopWhen(interval=0.2)}
    return Experiment(manifest=Manifest.model_validate(fields), created_at=experiment.created_at)


def wavering(run: Run) -> ScoredResponse:
    """The score of a run of `that_wavers`."""
    letters = WAVERING[int(run.scenario_id.removeprefix("scenario-"))]
    score = 0.9 if letters[run.repeat - 1] == "H" else 0.1
    vectors = dict.fromkeys(("verbosity", "exploratory", "interrogative"), score)
    return a_score(run, overall=score).model_copy(update={"vectors": vectors})


def an_unscored(run: Run, status: Status = Status.REFUSED, *, turn: int = 1) -> ScoredResponse:
    """A response that ended its run and has no score."""
    return ScoredResponse(run=run, turn=turn, last_turn=True, profile=CANONICAL, status=status)


def a_failure(run: Run, *, turn: int = 1, profile: str = CANONICAL) -> RunFailure:
    """A run that gave no response."""
    return RunFailure(
        run=run,
        turn=turn,
        profile=profile,
        kind="rate_limited",
        message="429: slow down",
        attempts=5,
    )


@dataclass(frozen=True)
class Facts:
    """Scores and failures, each once."""

    scores: tuple[ScoredResponse, ...] = ()
    failures: tuple[RunFailure, ...] = ()

    @property
    def cells(self) -> Mapping[CellKey, str]:
        """The cells of these facts, by definition."""
        return contents(fold(self.scores, self.failures).values())


def contents(cells: Iterable[Cell]) -> dict[CellKey, str]:
    """The cells as text, so that comparing them is comparing bytes."""
    return {cell.key: f"{cell.dimension} {cell.to_json()}" for cell in cells}


async def failures_in(store: Store, experiment_id: str) -> list[RunFailure]:
    """Every stored failure of an experiment."""
    return [each async for page in store.failure_rows(experiment_id) for each in page]
