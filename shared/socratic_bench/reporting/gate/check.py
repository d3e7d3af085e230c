"""One check of a gate, the thresholds behind it, and how old its answers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pydantic import BaseModel, ConfigDict

from socratic_bench.reporting.leaderboard.answer_sentences import days
from socratic_bench.reporting.leaderboard.figures import ModelFigures

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
