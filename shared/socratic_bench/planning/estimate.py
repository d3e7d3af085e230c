"""The remaining work of an experiment, and its estimate: calls, tokens, money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from socratic_bench.domain.experiment.manifest import (
    Experiment,
    Grader,
    Manifest,
    Student,
    TutorModel,
)
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.grading import INSTRUCTION, message_of
from socratic_bench.domain.money import (
    TOKENS_PER_MESSAGE,
    at_most_nanodollars,
    input_tokens_at_most,
    nanodollars,
)
from socratic_bench.domain.scenario import Scenario
from socratic_bench.domain.student import INSTRUCTION as STUDENT_INSTRUCTION
from socratic_bench.domain.student import message_of as student_prompt
from socratic_bench.planning.plan import PlanStore, refuse_stopped
from socratic_bench.planning.reuse import MOST_SOURCES, Outlook, Reuse, look_ahead
from socratic_bench.providers.registry import is_reference, usual_price
from socratic_bench.scoring.exchange import EarlierTurn

LIKELY_OUTPUT_TOKENS: Final = 165
"""Tokens of a likely answer: the mean, at four characters a token, of 215 answers by 24 models as
Socratic tutors. The models' own means ranged from 24 to 631, without reasoning."""

LIKELY_GRADING_TOKENS: Final = 3
"""Tokens of a likely grading: a number."""

LIKELY_MESSAGE_TOKENS: Final = 30
"""Tokens of a likely message of a student's model: those of the packs' messages."""

LIKELY_CHARACTERS_PER_TOKEN: Final = 4


class Range(NamedTuple):
    """A figure between a likely and a largest value."""

    likely: int
    at_most: int
    """The value with one call a turn; a paid call that fails and is repeated adds to it."""


class MeasuredLength(NamedTuple):
    """The length of a model's stored answers."""

    tokens: int
    """The mean of their output tokens, reasoning included, rounded up."""

    answers: int
    """Answers with a known length."""


@dataclass(frozen=True, slots=True)
class ModelEstimate:
    """The estimate of one model."""

    model: TutorModel
    runs: int
    calls: int
    """Turns of all runs: one call each, without retries."""

    input_tokens: Range
    output_tokens: Range
    cost: Range | None
    """Nanodollars; None for an unknown price, which is not zero."""

    length: MeasuredLength | None = None
    """The length of its stored answers, which the likely figures assume; None: a usual one."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of an experiment, model by model in the order of the manifest."""

    models: tuple[ModelEstimate, ...]
    student: ModelEstimate | None
    """The messages of the model that plays the student; None: no model does."""

    grader: ModelEstimate | None
    """The gradings of all responses; a text that was graded before costs nothing. None: no
    grader."""

    budget: int | None
    """Nanodollars left of the budget; None: no cap."""

    @property
    def runs(self) -> int:
        return sum(each.runs for each in self.models)

    @property
    def called(self) -> tuple[ModelEstimate, ...]:
        """The models under test, the student's and the grader."""
        others = (self.student, self.grader)
        return (*self.models, *(each for each in others if each is not None))

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.called)

    @property
    def input_tokens(self) -> Range:
        return _sum(each.input_tokens for each in self.called)

    @property
    def output_tokens(self) -> Range:
        return _sum(each.output_tokens for each in self.called)

    @property
    def cost(self) -> Range | None:
        """Nanodollars of all models with a known price; None without such a model.

        `unpriced` models add an unknown cost.
        """
        known = [each.cost for each in self.called if each.cost is not None]
        return _sum(known) if known else None

    @property
    def unpriced(self) -> tuple[TutorModel, ...]:
        """The real models without a price, whose cost is unknown."""
        return tuple(
            each.model for each in self.called if each.cost is None and not is_reference(each.model)
        )

    @property
    def may_exceed_budget(self) -> bool:
        """Whether the largest cost exceeds the budget."""
        return self._exceeds_budget(None if self.cost is None else self.cost.at_most)

    @property
    def likely_exceeds_budget(self) -> bool:
        """Whether the likely cost exceeds the budget."""
        return self._exceeds_budget(None if self.cost is None else self.cost.likely)

    def _exceeds_budget(self, cost: int | None) -> bool:
        return self.budget is not None and cost is not None and cost > self.budget


def estimate(
    manifest: Manifest,
    left: Mapping[tuple[str, str], int] | None = None,
    spent: int = 0,
    answered: int = 0,
    lengths: Mapping[str, MeasuredLength] | None = None,
) -> Estimate:
    """Estimate the runs of `manifest`, without I/O.

    `left` holds the number of runs to ask, by model id and scenario id; None: all. `spent`
    nanodollars of the budget are gone. `answered` responses are stored, and not scored. `lengths`
    are those of stored answers, by model id.
    """
    said = _said(manifest.student)
    known = lengths or {}
    models, answers, asked_of_all = [], [], Counter[str]()
    calls: dict[tuple[str, Range], dict[str, list[Range]]] = {}
    for model in manifest.models:
        runs = {
            scenario.id: manifest.repeats if left is None else left.get((model.id, scenario.id), 0)
            for scenario in manifest.scenarios
        }
        length, prompt = known.get(model.id), manifest.system_prompt_of(model)
        usual = LIKELY_OUTPUT_TOKENS if length is None else length.tokens
        answer = _up_to(usual, manifest.parameters_of(model).max_tokens)
        if (prompt, answer) not in calls:
            calls[prompt, answer] = {
                each.id: _calls(prompt, manifest.fixed_messages(each), each.turns, answer, said)
                for each in manifest.scenarios
            }
        asked = _model_estimate(model, answer, calls[prompt, answer], runs)
        models.append(replace(asked, length=length))
        answers.append(answer)
        asked_of_all.update(runs)
    budget = None if manifest.budget is None else max(0, nanodollars(manifest.budget) - spent)
    typical = Range(
        sum(each.likely for each in answers) // len(answers),
        max(each.at_most for each in answers),
    )
    student = None
    if manifest.student is not None:
        turns = {each.id: _turns_played(each, typical, said) for each in manifest.scenarios}
        student = _model_estimate(manifest.student.model, said, turns, asked_of_all)
    grader = None
    if manifest.use_llm_exploratory is not None:
        responses = answered + sum(each.calls for each in models)
        grader = _grader_estimate(manifest.use_llm_exploratory, typical, responses)
    return Estimate(models=tuple(models), student=student, grader=grader, budget=budget)


def _up_to(likely: int, max_tokens: int) -> Range:
    return Range(min(likely, max_tokens), max_tokens)


def _said(student: Student | None) -> Range:
    """Return the tokens of a message of the student's model."""
    return _up_to(LIKELY_MESSAGE_TOKENS, 0 if student is None else student.max_tokens)


def _turns_played(scenario: Scenario, answer: Range, said: Range) -> list[Range]:
    """Return the input tokens of each message that a model says in a run.

    A JSON string escapes characters, so at most twice the tokens of earlier turns are expected.
    """
    calls = []
    for answered in range(1, scenario.turns):
        opening = (EarlierTurn(scenario.prompt, ""),)
        texts = (STUDENT_INSTRUCTION, student_prompt(scenario, answered + 1, opening))
        likely = answered * answer.likely + (answered - 1) * said.likely
        most = answered * (answer.at_most + TOKENS_PER_MESSAGE) + (answered - 1) * said.at_most
        calls.append(Range(_likely_tokens(texts) + likely, input_tokens_at_most(texts) + 2 * most))
    return calls


def _grader_estimate(grader: Grader, answer: Range, responses: int) -> ModelEstimate:
    """Estimate one grading of each response, of these tokens.

    A JSON string escapes characters, so at most twice the tokens of the response are expected.
    """
    texts = (INSTRUCTION, message_of(""))
    asked = Range(
        _likely_tokens(texts) + answer.likely,
        input_tokens_at_most(texts) + 2 * answer.at_most,
    )
    grade = _up_to(LIKELY_GRADING_TOKENS, grader.max_tokens)
    return _model_estimate(grader.model, grade, {"": [asked]}, {"": responses})


def _likely_tokens(texts: Sequence[str]) -> int:
    return -(-sum(len(text) for text in texts) // LIKELY_CHARACTERS_PER_TOKEN)


def _calls(
    system_prompt: str, fixed: Sequence[str], turns: int, answer: Range, said: Range
) -> list[Range]:
    """Return the input tokens of each turn of a run, earlier answers included.

    A model says the student's messages after the fixed ones.
    """
    calls = []
    for earlier in range(turns):
        texts = (system_prompt, *fixed[: earlier + 1])
        played = max(0, earlier + 1 - len(fixed))
        others = earlier * (answer.at_most + TOKENS_PER_MESSAGE)
        others += played * (said.at_most + TOKENS_PER_MESSAGE)
        calls.append(
            Range(
                _likely_tokens(texts) + earlier * answer.likely + played * said.likely,
                input_tokens_at_most(texts) + others,
            )
        )
    return calls


def _model_estimate(
    model: TutorModel,
    answer: Range,
    calls: Mapping[str, Sequence[Range]],
    runs: Mapping[str, int],
) -> ModelEstimate:
    """Sum up `calls` of a run times `runs`, both by scenario; `answer` is in output tokens."""
    count = sum(len(calls[scenario]) * runs[scenario] for scenario in runs)
    input_tokens = _sum(_times(_sum(calls[scenario]), runs[scenario]) for scenario in runs)
    output_tokens = _times(answer, count)
    cost = None
    if (price := usual_price(model)) is not None:
        likely = price.cost_nanodollars(input_tokens.likely, output_tokens.likely)
        # Rounded up call by call, like reservations.
        at_most = sum(
            at_most_nanodollars(price, call.at_most, answer.at_most) * runs[scenario]
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


@dataclass(frozen=True, slots=True)
class Prospect:
    """The remaining work, and its cost."""

    outlook: Outlook
    estimate: Estimate
    begun_at: datetime | None = None
    """When the experiment was created; None for one that is not stored."""

    kept_name: str | None = None
    """The name that the stored experiment keeps, where the configuration has another one."""

    @classmethod
    def from_nothing(cls, experiment: Experiment) -> Prospect:
        """Return the work of an experiment without stored results."""
        manifest = experiment.manifest
        outlook = Outlook(manifest.planned_runs)
        for pair in experiment.conversation_keys:
            outlook.left[pair] = manifest.repeats
        outlook.first = manifest.begun_repeats(0) * manifest.runs_of_a_round
        return cls(outlook, estimate(manifest))


async def look_into(
    store: PlanStore,
    experiment: Experiment,
    *,
    fresh: bool,
    adopt: bool,
    retry_failed: bool = False,
) -> Prospect:
    """Find the remaining work and, if `adopt`, take over answers of other experiments.

    `retry_failed` includes failed runs; `fresh` takes over nothing. Raises ExperimentStopped for a
    stopped experiment, unless nothing would be taken over.
    """
    if adopt:
        await refuse_stopped(store, experiment.experiment_id)
    reuse = None if fresh else Reuse(experiment, store, experiment.created_at)
    outlook = await look_ahead(
        experiment, store, reuse=reuse, adopt=adopt, retry_failed=retry_failed
    )
    spent = 0
    stored = await store.experiment(experiment.experiment_id)
    if stored is not None:
        spent = (await store.spending(experiment.experiment_id)).committed
    answered = outlook.unscored_responses
    lengths = await measured_lengths(store, experiment) if outlook.new else {}
    return Prospect(
        outlook,
        estimate(experiment.manifest, outlook.left, spent, answered, lengths),
        begun_at=None if stored is None else stored.created_at,
        kept_name=None if stored is None else _kept_name(stored, experiment),
    )


async def measured_lengths(
    store: PlanStore, experiment: Experiment
) -> Mapping[str, MeasuredLength]:
    """Return the lengths of stored answers by model id, for the models that have some.

    They are the answers of the model at the same address with the same options, whatever it was
    asked, in the newest MOST_SOURCES experiments with one of the models.
    """
    wanted = {id_: address for id_, (_, address) in experiment.asked_of_models.items()}
    sources: dict[str, ExperimentOutline] = {}
    for outline in await store.outlines():
        if any(wanted.get(each.id) == each.asked[1] for each in outline.models):
            sources[outline.experiment_id] = outline
            if len(sources) == MOST_SOURCES:
                break
    totals, counts = Counter[str](), Counter[str]()
    for cell in await store.cells(sources) if sources else ():
        source, model_id = sources[cell.key.experiment_id], cell.key.model_id
        asked = next((each.asked[1] for each in source.models if each.id == model_id), None)
        # The responses stand in the cells of each profile that scored them.
        if cell.key.profile == source.profile and asked == wanted.get(model_id, ""):
            totals[model_id] += cell.visible_output_tokens.total + cell.reasoning_tokens.total
            counts[model_id] += cell.visible_output_tokens.n
    return {
        model_id: MeasuredLength(-(-totals[model_id] // count), count)
        for model_id, count in counts.items()
        if count
    }


def _kept_name(stored: Experiment, planned: Experiment) -> str | None:
    name, wanted = stored.manifest.name, planned.manifest.name
    return name if wanted is not None and wanted != name else None
