"""Fills a store with a million runs in minutes: the rows and cells that its roles would write.

The roles write some thousand runs a second. This writes texts that differ by the run alone, and
folds cells in memory; a test compares both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any, Final, Protocol

from socratic_bench.adapters.stores.records import microseconds, record_of
from socratic_bench.adapters.stores.sql.aggregate_statements import row_of_cell
from socratic_bench.adapters.stores.sql.store import SqlStore
from socratic_bench.domain.aggregates.cell import Cell, CellKey
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.domain.response import Response, Usage
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.score import score

VARIANTS: Final = 8
"""The number of different answers of a model to a scenario; one more fails."""

PENDING: Final = 20
"""The last runs of the first experiment, which are not done."""

_RUNS_AT_ONCE: Final = 20_000
_REPEAT: Final = 98_765
_RUN_ID: Final = "run-of-the-template"
_EXPERIMENT_ID: Final = "exp-of-the-template"
_RECORDED_AT: Final = datetime(2026, 3, 2, 10, tzinfo=UTC)
_ASKING: Final = "What might have changed in the weeks before? Perhaps it depends on your readers. "
_TELLING: Final = "You should always write the plan first. The answer is to ask ten customers. "


class Loader(Protocol):
    """Writes many rows into a table of a store."""

    async def load(self, table: str, rows: Sequence[dict[str, Any]]) -> None: ...


@dataclass(frozen=True, slots=True)
class Template:
    """A record without what tells one run of a model on a scenario from another."""

    parts: tuple[str, str, str, str]

    @classmethod
    def of(cls, record: str) -> Template:
        begin, rest = record.split(_RUN_ID)
        between, rest = rest.split(_EXPERIMENT_ID)
        middle, end = rest.split(str(_REPEAT))
        return cls((begin, between, middle, end))

    def record(self, run: Run) -> str:
        begin, between, middle, end = self.parts
        return f"{begin}{run.run_id}{between}{run.experiment_id}{middle}{run.repeat}{end}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run: a scored response, or a failure."""

    response: Response | None = None
    scored: ScoredResponse | None = None
    failure: RunFailure | None = None

    def of(self, run: Run) -> Outcome:
        """Return the same outcome of another run."""
        of_run = {"run": run}
        return Outcome(
            self.response and self.response.model_copy(update=of_run),
            self.scored and self.scored.model_copy(update=of_run),
            self.failure and self.failure.model_copy(update=of_run),
        )


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the outcomes of a model on a scenario, as facts of a run that no plan has."""

    outcome: Outcome
    templates: tuple[Template, ...]
    """Of the response and its score, or of the failure."""

    @classmethod
    def of(cls, outcome: Outcome) -> Variant:
        facts = (outcome.response, outcome.scored, outcome.failure)
        return cls(outcome, tuple(Template.of(record_of(fact)) for fact in facts if fact))


Variants = dict[tuple[str, str], tuple[list[Variant], Variant]]
"""The answers, and the failure, of each model on each scenario."""


@dataclass(slots=True)
class Rows:
    """Rows of some runs, by table."""

    responses: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)
    failed_runs: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, run: Run, variant: Variant, profile: str) -> None:
        of_run = {"experiment_id": run.experiment_id, "run_id": run.run_id}
        records = [each.record(run) for each in variant.templates]
        if variant.outcome.failure is not None:
            [record] = records
            self.failed_runs.append({**of_run, "retry": 0, "record": record})
            self.failures.append({**of_run, "profile": profile, "counted": True, "record": record})
            return
        response, scored = records
        self.responses.append({"run_id": run.run_id, "turn": 1, "record": response})
        self.calls.append({**of_run, "turn": 1, **_NO_CALL})
        of_turn = {**of_run, "turn": 1, "profile": profile}
        self.scores.append({**of_turn, "last_turn": True, "record": scored})


_NO_CALL: Final = {
    "calls": 0,
    "owner": "",
    "leased_until": 0,
    "reserved": 0,
    "lease_id": "",
    "lapsed": None,
}


async def fill(store: SqlStore, loader: Loader, experiments: Sequence[Experiment]) -> None:
    """Register experiments, and carry out their runs, but for the last ones of the first."""
    variants = variants_of(experiments[0])
    for place, experiment in enumerate(experiments):
        await store.register(experiment)
        done = experiment.manifest.planned_runs - (0 if place else PENDING)
        await _carry_out(loader, experiment, done, variants)
        if place:
            at = microseconds(experiment.created_at + timedelta(hours=1))
            await loader.load(
                "completed", [{"experiment_id": experiment.experiment_id, "completed_at": at}]
            )


async def _carry_out(loader: Loader, experiment: Experiment, runs: int, variants: Variants) -> None:
    cells: dict[CellKey, Cell] = {}
    spent = 0
    remaining = islice(experiment.runs(), runs)
    while batch := list(islice(remaining, _RUNS_AT_ONCE)):
        rows = Rows()
        for run in batch:
            variant = _variant_of(variants, run)
            spent += _fold(cells, run, variant.outcome)
            rows.add(run, variant, experiment.manifest.profile)
        for table in Rows.__slots__:
            await loader.load(table, getattr(rows, table))
    await loader.load("cells", [dict(row_of_cell(cells[key])) for key in sorted(cells)])
    await loader.load("spent", [{"experiment_id": experiment.experiment_id, "committed": spent}])


def outcomes(experiment: Experiment, runs: int) -> Iterator[Outcome]:
    """Yield the outcome of each of the first runs, for the roles of a store."""
    variants = variants_of(experiment)
    for run in islice(experiment.runs(), runs):
        yield _variant_of(variants, run).outcome.of(run)


def variants_of(experiment: Experiment) -> Variants:
    """Return the outcomes of the runs of an experiment, and of others with its plan."""
    return {
        (model.id, scenario.id): (
            [_answered(experiment, model, scenario, number) for number in range(VARIANTS)],
            _failed(experiment, model, scenario),
        )
        for model in experiment.manifest.models
        for scenario in experiment.manifest.scenarios
    }


def _variant_of(variants: Variants, run: Run) -> Variant:
    answers, failure = variants[run.model_id, run.scenario_id]
    digit = int(run.run_id[-4:], 16)
    return failure if digit % 100 == 0 else answers[digit % VARIANTS]


def _template_run(model: TutorModel, scenario: Scenario) -> Run:
    return Run(
        run_id=_RUN_ID,
        experiment_id=_EXPERIMENT_ID,
        model_id=model.id,
        scenario_id=scenario.id,
        dimension=scenario.dimension,
        repeat=_REPEAT,
    )


def _answered(
    experiment: Experiment, model: TutorModel, scenario: Scenario, number: int
) -> Variant:
    chance = Random(f"{model.id} {scenario.id} {number}")
    skill = Random(model.id).uniform(0.1, 0.9)
    sentences = [_ASKING if chance.random() < skill else _TELLING for _ in range(7)]
    ending = "What do you think?" if chance.random() < skill else "Do that."
    text = "".join(sentences) + ending
    tokens = len(text) // 4
    price = model.price
    response = Response(
        run=_template_run(model, scenario),
        turn=1,
        last_turn=True,
        profile=experiment.manifest.profile,
        student_message=scenario.student_messages[0],
        text=text,
        status=Status.OK,
        usage=Usage(visible_output_tokens=tokens, input_tokens=120),
        latency_ms=round(chance.uniform(300, 1800)),
        cost_nanodollars=None if price is None else price.cost_nanodollars(120, tokens),
        stop_reason="end_turn",
        model_version="tutor-2026-01",
        recorded_at=_RECORDED_AT,
    )
    return Variant.of(Outcome(response, _score_of(response)))


def _failed(experiment: Experiment, model: TutorModel, scenario: Scenario) -> Variant:
    failure = RunFailure(
        run=_template_run(model, scenario),
        turn=1,
        profile=experiment.manifest.profile,
        kind=("rate_limited", "timeout")[len(scenario.id) % 2],
        message="429: slow down",
        attempts=5,
    )
    return Variant.of(Outcome(failure=failure))


def _score_of(response: Response) -> ScoredResponse:
    measured = score(
        response.text,
        output_tokens=response.usage.visible_output_tokens,
        dimension=response.run.dimension,
        student_message=response.student_message,
        profile=response.profile,
    )
    return ScoredResponse(
        run=response.run,
        turn=response.turn,
        last_turn=response.last_turn,
        profile=response.profile,
        status=measured.status,
        vectors=measured.vectors,
        overall=measured.overall,
        usage=response.usage,
        latency_ms=response.latency_ms,
        cost_nanodollars=response.cost_nanodollars,
    )


def _fold(cells: dict[CellKey, Cell], run: Run, outcome: Outcome) -> int:
    """Fold an outcome into its cell; returns its cost."""
    fact = outcome.scored or outcome.failure
    if fact is None:
        raise AssertionError("an outcome is a score or a failure")
    key = CellKey(run.experiment_id, run.model_id, run.scenario_id, fact.turn, fact.profile)
    cell = cells.get(key)
    if cell is None:
        cell = cells[key] = Cell(key, run.dimension)
    if outcome.scored is None:
        cell.add_failure()
        return 0
    cell.add_score(outcome.scored)
    return outcome.scored.cost_nanodollars or 0
