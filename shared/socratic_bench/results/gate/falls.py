"""The checks of a gate, and the models beside the baseline: where they fell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict

from socratic_bench.ports.stores.responses import Responses
from socratic_bench.results.compare.model_difference import ModelDifference, ScenarioPair, Side
from socratic_bench.results.experiment_choice import CostedStore
from socratic_bench.results.leaderboard.answer_sentences import days
from socratic_bench.results.leaderboard.figures import ModelFigures
from socratic_bench.results.transcripts import transcripts, worst_first

ROUNDING: Final = 1e-9
"""A mean this much below its threshold passes: it is the same number, computed otherwise."""

SHARED_RUNS: Final = 0.8
"""The least share of the baseline's scored runs, where nothing else is said: a run may fail."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What models have to reach. Scores and shares are 0.0 to 1.0."""

    least_overall: float | None = None
    """The least overall score of every real model."""

    least_overall_of: Mapping[str, float] = field(default_factory=dict)
    """The least overall score of single models, by id; reference tutors may be among them."""

    least_coverage: float | None = None
    """The least coverage of every real model."""

    least_turns_kept: float | None = None
    """The least turns that every real model keeps asking, by the profile `fidelity-1`."""

    baseline: str | None = None
    """An experiment that no real model may fall below, by `most_drop`."""

    most_drop: float = 0.0
    """How much the overall score of a model may fall on the scenarios of both experiments."""

    least_shared: float | None = None
    """The least share of the baseline's models, and of a model's scenarios and scored runs there,
    that the experiment has; None: all models and scenarios, and SHARED_RUNS."""

    allows_unfinished: bool = False
    """Whether an experiment with pending runs may pass."""

    allows_reused: bool = False
    """Whether an experiment of reused answers alone may pass."""

    allows_itself: bool = False
    """Whether an experiment may be its own baseline."""

    allows_no_baseline: bool = False
    """Whether an experiment may pass where there is no baseline yet."""

    fresh_only: bool = False
    """Whether no answer may be a reused one."""

    profile: str | None = None
    """The profile to read the scores by; None: the experiment's own."""


class Check(BaseModel):
    """One check of one model."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    """Empty for a check of the whole experiment."""

    name: str
    """The promise, such as `overall is at least 0.6`."""

    passed: bool
    detail: str
    """The figures that decided."""

    value: float | None = None
    """The figure that decided; null without one."""

    threshold: float | None = None
    """What it had to reach, or not to pass; null where the check is no matter of numbers."""


def asked(model: ModelFigures, now: datetime) -> str:
    """Return in words on which days the answers of a model were asked for, and how old they are."""
    if model.asked is None:
        return "asked for at an unknown time"
    old = (now.astimezone(UTC).date() - model.asked[1]).days
    age = f" ({old} {'day' if old == 1 else 'days'} ago)" if old > 0 else ""
    return f"asked for {days(model.asked)}{age}"


MOST_SCENARIOS: Final = 3
"""The scenarios of a model that are told with their texts."""

MOST_MODELS: Final = 5
"""The models whose texts are read."""

LONGEST: Final = 600
"""Characters of a text that are kept."""


class GateStore(CostedStore, Responses, Protocol):
    """Experiments, their cells, and the texts of the answers."""


class ScenarioFall(BaseModel):
    """One scenario before and now, with the worst answer of each."""

    model_config = ConfigDict(frozen=True)

    scenario_id: str
    before: float
    now: float
    student: str = ""
    answer_before: str = ""
    answer_now: str = ""


class ModelFall(BaseModel):
    """A model beside itself in the baseline. A rise is a fall below zero."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    baseline: Side
    experiment: Side
    experiments: int
    """The experiments that make the baseline."""

    scenarios: int
    before: float | None
    now: float | None
    change: float | None
    """`now` less `before`, over the scenarios of both."""

    interval: tuple[float, float] | None
    """95 % of the change; null with fewer than five scenarios."""

    is_real: bool
    """Whether chance explains no change of this size, at 5 %."""

    vectors: dict[str, float | None]
    """The change of each vector."""

    left_out: int
    """Copies of older answers that no figure here holds."""

    fell: int
    """The scenarios of both on which it fell."""

    worst: tuple[ScenarioFall, ...]
    """Those that fell most, the worst first."""

    notes: tuple[str, ...]
    """What a reader has to know about the answers of both, a sentence each."""

    @classmethod
    def of(cls, difference: ModelDifference, experiments: int) -> ModelFall:
        """Return a difference of the baseline and the experiment, in this order, as a change."""
        overall, *vectors = difference.figures
        interval = overall.interval
        fell = sorted(
            (pair for pair in difference.by_scenario if pair.difference > 0),
            key=lambda pair: -pair.difference,
        )
        return cls(
            model_id=difference.second.model_id,
            model_name=difference.second.model_name,
            baseline=difference.first,
            experiment=difference.second,
            experiments=experiments,
            scenarios=difference.scenarios,
            before=overall.first,
            now=overall.second,
            change=None if overall.difference is None else 0.0 - overall.difference,
            interval=None if interval is None else (0.0 - interval[1], 0.0 - interval[0]),
            is_real=difference.is_real,
            vectors={
                each.name: None if each.difference is None else -each.difference for each in vectors
            },
            left_out=difference.left_out,
            fell=len(fell),
            worst=tuple(_scenario(pair) for pair in fell[:MOST_SCENARIOS]),
            notes=difference.notes,
        )


def _scenario(pair: ScenarioPair) -> ScenarioFall:
    return ScenarioFall(scenario_id=pair.scenario_id, before=pair.first, now=pair.second)


async def with_texts(
    store: GateStore, falls: Sequence[ModelFall], failed: Collection[str]
) -> tuple[ModelFall, ...]:
    """Add the texts of the worst scenarios to models whose checks failed, the first few."""
    chosen = [each.model_id for each in falls if each.model_id in failed][:MOST_MODELS]
    return tuple(
        [await _with_texts(store, each) if each.model_id in chosen else each for each in falls]
    )


async def _with_texts(store: GateStore, fallen: ModelFall) -> ModelFall:
    worst = []
    for each in fallen.worst:
        before = await _worst_answer(store, fallen.baseline, each.scenario_id)
        now = await _worst_answer(store, fallen.experiment, each.scenario_id)
        worst.append(
            each.model_copy(
                update={
                    "student": now.student,
                    "answer_before": before.text,
                    "answer_now": now.text,
                }
            )
        )
    return fallen.model_copy(update={"worst": tuple(worst)})


@dataclass(frozen=True, slots=True)
class _Answer:
    student: str = ""
    text: str = ""


async def _worst_answer(store: GateStore, side: Side, scenario_id: str) -> _Answer:
    experiment = await store.experiment(side.experiment_id)
    if experiment is None or scenario_id not in experiment.manifest.scenarios_by_id:
        return _Answer()
    found = transcripts(store, experiment, model=side.model_id, scenario=scenario_id)
    for transcript in await worst_first(found, 1):
        scored = [turn for turn in transcript.turns if turn.score.overall is not None]
        turn = min(scored, key=lambda each: each.score.overall or 0.0)
        return _Answer(_short(turn.response.student_message), _short(turn.response.text))
    return _Answer()


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST].rstrip() + " …"
