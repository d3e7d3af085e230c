"""What a manifest will take before any of it is carried out: calls, tokens, money."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from socratic_bench.domain.call_cost import (
    TOKENS_PER_MESSAGE,
    at_most_nanodollars,
    input_tokens_at_most,
)
from socratic_bench.domain.experiment.manifest import Manifest, TutorModel
from socratic_bench.domain.money import nanodollars
from socratic_bench.domain.scenario import Scenario
from socratic_bench.providers.registry import is_reference

LIKELY_OUTPUT_TOKENS: Final = 165
"""Tokens of a likely answer: the mean, at four characters a token, of 215 answers that 24 models
gave as Socratic tutors. Their own means went from 24 to 631; reasoning is not counted in."""

LIKELY_CHARACTERS_PER_TOKEN: Final = 4


class Range(NamedTuple):
    """A figure that is not known yet."""

    likely: int
    at_most: int
    """With one call a turn: one that failed, was paid for and is made again adds to it."""


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """What one model will take."""

    model: TutorModel
    runs: int
    calls: int
    """Turns of all runs: one call each, where nothing has to be tried again."""

    input_tokens: Range
    output_tokens: Range
    cost: Range | None
    """Nanodollars; None where the price is unknown, which is not zero."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an experiment will take, model by model in the order of the manifest."""

    models: tuple[ModelEstimate, ...]
    budget: int | None
    """Nanodollars that it may still cost; None: no cap."""

    @property
    def runs(self) -> int:
        return sum(each.runs for each in self.models)

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.models)

    @property
    def input_tokens(self) -> Range:
        return _sum(each.input_tokens for each in self.models)

    @property
    def output_tokens(self) -> Range:
        return _sum(each.output_tokens for each in self.models)

    @property
    def cost(self) -> Range | None:
        """Nanodollars of all models with a known price; None if there is no such model.

        Where models are `unpriced` it is that much at least.
        """
        known = [each.cost for each in self.models if each.cost is not None]
        return _sum(known) if known else None

    @property
    def unpriced(self) -> tuple[TutorModel, ...]:
        """The real models without a price: what they cost is unknown."""
        return tuple(
            each.model for each in self.models if each.cost is None and not is_reference(each.model)
        )

    @property
    def may_exceed_budget(self) -> bool:
        """Whether the budget does not suffice for the most it can cost."""
        return self._exceeds_budget(None if self.cost is None else self.cost.at_most)

    @property
    def likely_exceeds_budget(self) -> bool:
        """Whether the budget does not suffice for what it is likely to cost."""
        return self._exceeds_budget(None if self.cost is None else self.cost.likely)

    def _exceeds_budget(self, cost: int | None) -> bool:
        return self.budget is not None and cost is not None and cost > self.budget


def estimate(
    manifest: Manifest, left: Mapping[tuple[str, str], int] | None = None, spent: int = 0
) -> Estimate:
    """What carrying out `manifest` takes. Asks nobody.

    `left` says how many runs of each model in each scenario are to be asked, by the ids of both;
    without it, all. `spent` nanodollars of the budget are gone.
    """
    max_tokens = manifest.parameters.max_tokens
    calls = {
        prompt: {each.id: _calls(prompt, each, max_tokens) for each in manifest.scenarios}
        for prompt in {manifest.system_prompt_of(model) for model in manifest.models}
    }
    models = []
    for model in manifest.models:
        runs = {
            scenario.id: manifest.repeats if left is None else left.get((model.id, scenario.id), 0)
            for scenario in manifest.scenarios
        }
        asked = calls[manifest.system_prompt_of(model)]
        models.append(_model_estimate(model, max_tokens, asked, runs))
    budget = None if manifest.budget is None else max(0, nanodollars(manifest.budget) - spent)
    return Estimate(models=tuple(models), budget=budget)


def _calls(system_prompt: str, scenario: Scenario, max_tokens: int) -> list[Range]:
    """The input tokens of each turn of a run; what was answered before is sent along."""
    answer = Range(min(LIKELY_OUTPUT_TOKENS, max_tokens), max_tokens)
    calls = []
    for earlier_turns in range(scenario.turns):
        texts = (system_prompt, *scenario.student_messages[: earlier_turns + 1])
        characters = sum(len(text) for text in texts)
        likely = -(-characters // LIKELY_CHARACTERS_PER_TOKEN)
        calls.append(
            Range(
                likely + earlier_turns * answer.likely,
                input_tokens_at_most(texts) + earlier_turns * (answer.at_most + TOKENS_PER_MESSAGE),
            )
        )
    return calls


def _model_estimate(
    model: TutorModel,
    max_tokens: int,
    calls: Mapping[str, Sequence[Range]],
    runs: Mapping[str, int],
) -> ModelEstimate:
    """`calls` of a run and `runs`, both by scenario."""
    count = sum(len(calls[scenario]) * runs[scenario] for scenario in runs)
    input_tokens = _sum(_times(_sum(calls[scenario]), runs[scenario]) for scenario in runs)
    output_tokens = _times(Range(min(LIKELY_OUTPUT_TOKENS, max_tokens), max_tokens), count)
    cost = None
    if model.price is not None:
        likely = model.price.cost_nanodollars(input_tokens.likely, output_tokens.likely)
        # Rounded up call by call, as it is when the budget is kept.
        at_most = sum(
            at_most_nanodollars(model.price, call.at_most, max_tokens) * runs[scenario]
            for scenario in runs
            for call in calls[scenario]
        )
        cost = Range(likely, at_most)
    return ModelEstimate(
        model=model,
        runs=sum(runs.values()),
        calls=count,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cost=cost,
    )


def _sum(ranges: Iterable[Range]) -> Range:
    likely = at_most = 0
    for each in ranges:
        likely += each.likely
        at_most += each.at_most
    return Range(likely, at_most)


def _times(each: Range, count: int) -> Range:
    return Range(each.likely * count, each.at_most * count)
