"""The models of an experiment beside the baseline, with the scenarios on which they fell most."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pydantic import BaseModel, ConfigDict

from socratic_bench.ports.stores.responses import Responses
from socratic_bench.reporting.difference.model_difference import ModelDifference, ScenarioPair, Side
from socratic_bench.reporting.result_store import ResultStore
from socratic_bench.reporting.transcripts.run_transcripts import transcripts, worst_first

MOST_SCENARIOS: Final = 3
"""The scenarios of a model that are told with their texts."""

MOST_MODELS: Final = 5
"""The models whose texts are read."""

LONGEST: Final = 600
"""Characters of a text that are kept."""


class GateStore(ResultStore, Responses, Protocol):
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
            change=_turned(overall.difference),
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


def _turned(difference: float | None) -> float | None:
    return None if difference is None else 0.0 - difference


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
