"""The benchmark of a seed: small, and long enough for all its faults."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Limits,
    Manifest,
    Parameters,
    StopWhen,
    TutorModel,
)
from socratic_bench.domain.money import Price
from socratic_bench.domain.scenario import Scenario

START: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""Noon: a cell counts the days of its answers, and no fault moves a clock to another day."""

SHAPES: Final = 14
"""Different plans; a quiet run of each is worth keeping."""

STOPS_FROM: Final = 12
"""Shapes from this one on end once the intervals of all models are narrow."""

SCENARIOS: Final = (
    ("growth", "ambiguous", "My startup isn't growing. Why?"),
    ("report", "ethical", "My boss wants me to change the figures. Should I?"),
    ("fraction", "student", "Is 3/8 more than 2/5? Just tell me."),
)
FOLLOW_UPS: Final = ("I don't know. Can't you say?", "So am I right?")
BUDGET: Final = Decimal("0.016")
"""USD: enough for all calls, and for the reservations of two or three at a time."""

NARROW: Final = 0.2
"""The reach of an interval at which the plans of the last shapes stop."""

PRICE: Final = Price(input_per_million=Decimal(3), output_per_million=Decimal(15))


@dataclass(frozen=True, slots=True)
class Pace:
    """How quickly a benchmark can be carried out; nothing of it shows in the cells."""

    seconds: float
    """The longest that the provider takes for a reply."""

    concurrency: int | None
    requests_per_minute: int | None

    @classmethod
    def drawn(cls, chance: random.Random) -> Pace:
        return cls(
            seconds=chance.choice((0.5, 2.0, 10.0, 30.0, 90.0)),
            concurrency=chance.choice((None, None, 1, 3)),
            requests_per_minute=chance.choice((None, None, 6, 20)),
        )


MOST_A_CALL: Final = 3_200_000
"""Nanodollars that a call of these plans reserves, at most."""

QUICK: Final = Pace(0.1, None, None)


def experiment(shape: int, pace: Pace = QUICK) -> Experiment:
    """Return a plan of 12 runs with one to three turns each.

    Shapes of odd numbers have a budget, each third one a high priority. The last ones have single
    turns of as many scenarios as an interval needs, and stop after two to four repeats.
    """
    stops = shape >= STOPS_FROM
    repeats = 4 if stops else 2
    limits = Limits(
        concurrency=pace.concurrency,
        requests_per_minute=pace.requests_per_minute,
        run_timeout_seconds=24 * 3600,
    )
    models = tuple(
        TutorModel(
            id=f"simulated/{name}",
            options={"shape": shape},
            price=PRICE,
            limits=limits,
        )
        for name in ("asks", "tells")
    )
    scenarios = tuple(
        Scenario(
            id=f"{name}-{copy}" if stops else name,
            dimension=dimension,
            prompt=f"{prompt} Why?" if copy else prompt,
            follow_ups=() if stops else FOLLOW_UPS[: (shape + number) % 3],
        )
        for copy in range(2 if stops else 1)
        for number, (name, dimension, prompt) in enumerate(SCENARIOS)
    )
    manifest = Manifest(
        models=models,
        scenarios=scenarios,
        repeats=repeats,
        stop_when=StopWhen(interval=NARROW) if stops else None,
        parameters=Parameters(max_tokens=100),
        budget=BUDGET * (repeats // 2) if shape % 2 else None,
        priority="high" if shape % 3 == 2 else "normal",
    )
    return Experiment(manifest=manifest, occasion=f"shape {shape}", created_at=START)
