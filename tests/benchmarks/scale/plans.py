"""The experiments of a big store: a big one, and many small ones before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.scenario import Scenario
from socratic_bench.planning.config_file.scenario_selection import load_pack

_NEWEST: Final = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
_SMALL_REPEATS: Final = 5


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a store."""

    runs: int
    experiments: int
    models: int = 25

    def __str__(self) -> str:
        return f"{self.runs:,} runs, {self.experiments} experiments"


SMALL: Final = Size(1_125, 1)
"""One experiment of 25 models, 15 scenarios and 3 repeats."""

BIG: Final = Size(1_000_000, 200)


def experiments_of(size: Size) -> list[Experiment]:
    """Return the experiments of a store, newest first: the first has most of the runs.

    The others have five repeats each, or fewer, and share a tenth to a third of the runs.
    """
    scenarios = tuple(load_pack())
    a_repeat = size.models * len(scenarios)
    others = size.experiments - 1
    repeats = min(_SMALL_REPEATS, max(1, size.runs // (2 * a_repeat * max(1, others))))
    left = size.runs - others * repeats * a_repeat
    first = _experiment(size, scenarios, math.ceil(left / a_repeat), 0)
    return [first, *(_experiment(size, scenarios, repeats, week) for week in range(1, others + 1))]


def _experiment(
    size: Size, scenarios: tuple[Scenario, ...], repeats: int, weeks: int
) -> Experiment:
    at = _NEWEST - timedelta(weeks=weeks)
    week = at.isocalendar()
    return Experiment(
        manifest=Manifest(
            models=tuple(map(_model, range(size.models))), scenarios=scenarios, repeats=repeats
        ),
        occasion=f"{week.year}-W{week.week:02}",
        created_at=at,
    )


def _model(number: int) -> TutorModel:
    return TutorModel(
        id=f"provider-{number % 7}/tutor-{number}",
        name=f"Tutor {number}",
        price=Price(input_per_million=Decimal(1), output_per_million=Decimal(number + 1)),
    )
