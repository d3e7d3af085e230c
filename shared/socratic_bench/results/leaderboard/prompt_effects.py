"""The effect of each prompt of a matrix over its models, paired by scenario and model.

A scenario's difference is the mean of the models' differences in it, so the models are those that
were asked and the scenarios stand for others: intervals are clustered by scenario, as those of two
models are (`domain.aggregates.difference`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.difference import (
    FAMILY_ERROR,
    NO_DIFFERENCE,
    holm,
    paired_difference,
)
from socratic_bench.domain.aggregates.leaderboard import ModelRow
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.providers.registry import is_reference


class PromptEffect(BaseModel):
    """A prompt of a matrix, over the models and scenarios with a score under every prompt."""

    model_config = ConfigDict(frozen=True)

    prompt: str
    overall: float | None
    """The mean over scenarios of the mean over models; null without a common score."""

    difference: float | None
    """How much more than under the first prompt; null for the first one."""

    interval: tuple[float, float] | None
    """95 %, clustered by scenario; null with fewer than five scenarios."""

    p_value: float | None
    """Two-sided, corrected by Holm's method for the number of prompts; null for the first one."""

    is_real: bool
    """Whether the p value is at most 5 %."""

    models: int
    scenarios: int


def prompt_effects(
    rows: Iterable[ModelRow], experiments: Iterable[ExperimentOutline]
) -> tuple[PromptEffect, ...]:
    """Return the effect of each prompt of these rows, in the order of their experiments.

    The rows have one set of conditions. Reference tutors heed no prompt: they count only without
    other models. Returns none without two prompts.
    """
    order = [id_ for each in experiments for id_ in each.model_ids]
    under = [row for row in rows if row.model.prompt is not None]
    under.sort(key=lambda row: order.index(row.model.id))
    real = [row for row in under if not is_reference(row.model)]
    by_prompt: dict[str, dict[str, FigureSums[str]]] = {}
    for row in real or under:
        by_prompt.setdefault(row.model.prompt or "", {})[row.model.own_id] = row.overall
    if len(by_prompt) < 2:
        return ()
    common = _common(list(by_prompt.values()))
    sums = [
        FigureSums.mean_of([of[model] for model in common], list(common.values()))
        for of in by_prompt.values()
    ]
    first, *others = sums
    found = [paired_difference(each, first) if common else NO_DIFFERENCE for each in others]
    adjusted = holm([each.p_value for each in found])
    effects = []
    for prompt, own, difference, p in zip(
        by_prompt, sums, (None, *found), (None, *adjusted), strict=True
    ):
        means = own.own.means
        effects.append(
            PromptEffect(
                prompt=prompt,
                overall=sum(means) / len(means) if means else None,
                difference=None if difference is None else difference.mean,
                interval=None if difference is None else difference.interval,
                p_value=p,
                is_real=p is not None
                and p <= FAMILY_ERROR
                and bool(difference and difference.mean),
                models=len(common),
                scenarios=len(means),
            )
        )
    return tuple(effects)


def _common(prompts: Sequence[dict[str, FigureSums[str]]]) -> dict[str, set[str]]:
    """Return the models with a scenario scored under every prompt, and those scenarios."""
    first, *others = prompts
    found = {}
    for model, sums in first.items():
        scenarios = set(sums.own.scenarios)
        for other in others:
            scenarios &= set(other[model].own.scenarios) if model in other else set()
        if scenarios:
            found[model] = scenarios
    return found
