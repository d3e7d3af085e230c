"""Two models on the same scenarios: their differences, overall and scenario by scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.difference import MARGIN, paired_difference, scenarios_to_tell
from socratic_bench.domain.aggregates.parts import FigureSums
from socratic_bench.domain.aggregates.run_scores import RunScores, VectorScores, run_scores
from socratic_bench.domain.aggregates.statistics import FEWEST_CLUSTERS, fewest_scenarios
from socratic_bench.domain.aggregates.variance import repeats_to_tell, split_variance
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import InvalidInput
from socratic_bench.results.cache.pools import copies_in, own_answers
from socratic_bench.results.compare.sides import (
    Compared,
    EquivalenceFigures,
    VarianceFigures,
    answer_cautions,
    find_sides,
    model_of,
)
from socratic_bench.results.compare.turns_kept import TurnsKeptPair, turns_kept_pair
from socratic_bench.results.experiment_choice import (
    ResultStore,
    cells_under,
    common_profiles,
    scored_by,
)
from socratic_bench.scoring.composition import Composition
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.scoring.profiles import known_composition, weights_sentence
from socratic_bench.version import __version__

Question = tuple[str, str]
"""A scenario's id and the name of what its student says: both must agree in two experiments."""


class Side(BaseModel):
    """One of the two models, in its experiment."""

    model_config = ConfigDict(frozen=True)

    model_id: str
    model_name: str
    experiment_id: str
    title: str | None
    """The experiment's name and its occasion; null without both."""

    created_at: datetime
    conditions_id: str
    answers: int
    """Its answers with a text; 0 in experiments of versions that did not count them."""

    reused: int
    """Of these, copies of answers that an earlier experiment asked for."""

    scored: int
    """Its scored answers on the scenarios of both, copies included."""


class FigurePair(BaseModel):
    """A figure of both models over their common scenarios, each of the same weight."""

    model_config = ConfigDict(frozen=True)

    name: str
    """`overall`, or a vector."""

    first: float | None
    second: float | None
    difference: float | None
    """`first` less `second`."""

    interval: tuple[float, float] | None
    """95 %, paired by scenario; null with fewer than five scenarios, or than the vector needs."""


class ScenarioPair(BaseModel):
    """The overall scores of both models on one scenario, as means over its runs."""

    model_config = ConfigDict(frozen=True)

    scenario_id: str
    dimension: str
    first: float
    second: float
    difference: float


class ModelDifference(BaseModel):
    """How much more the first model scores than the second, and whether chance explains it."""

    model_config = ConfigDict(frozen=True)

    first: Side
    second: Side
    profile: str
    profiles: tuple[str, ...]
    """The profiles that the experiments of both have scores by."""

    scenarios: int
    """Scenarios on which both have a score."""

    scenarios_shared: int
    """The same, with copies that are left out here."""

    scenarios_of_first: int
    """Scenarios on which the first has a score."""

    scenarios_of_second: int
    """Scenarios on which the second has a score."""

    figures: tuple[FigurePair, ...]
    """`overall` first, then the vectors."""

    p_value: float
    """Of the overall difference, two-sided, paired by scenario; 1 with fewer than five."""

    is_real: bool
    """Whether the p value is at most 5 %."""

    scenarios_to_tell: int | None
    """About how many scenarios like these would show a difference of this size, with 80 % power;
    null if unknown.
    """

    repeats_to_tell: int | None
    """About how many repeats of the same scenarios would, with 80 % power; null if unknown, and
    where no number suffices."""

    equivalence: EquivalenceFigures
    variance: VarianceFigures | None
    """The parts of the variance of a score; null with fewer than five scenarios."""

    turns_kept: TurnsKeptPair | None = Field(default=None, exclude_if=lambda each: each is None)
    """Under a profile that counts breaks; left out otherwise."""

    by_scenario: tuple[ScenarioPair, ...]
    """The scenarios that separate the two most come first."""

    left_out: int
    """Copies that no figure here holds: a model beside its own earlier answers would agree with
    itself. So those of the newer experiment are left out, unless it has no other answers."""

    note: str | None
    """All cautions; null without one."""

    notes: tuple[str, ...]
    """The cautions, a sentence each."""

    version: str = __version__


_UPPER_BOUND: Final = (
    "The part of the variance between repeats is the most that it can be: no cell tells how the "
    "vectors vary together."
)


async def model_difference(
    store: ResultStore,
    first: str,
    second: str,
    experiment: str | None = None,
    margin: float = MARGIN,
    profile: str | None = None,
) -> ModelDifference:
    """Compare two models, each `MODEL` or `MODEL@EXPERIMENT`, by what both were asked.

    An experiment of one model stands for that model.

    `experiment` holds for a side that names none; without it two models are looked for in the
    newest experiment that has both, or else each in its newest one. A difference less than `margin`
    is too small to matter. `profile` replaces the own one of both experiments. Raises UnknownModel,
    UnknownExperiment, AmbiguousExperiment, NoScores, and InvalidInput for experiments scored by
    different profiles, for a model compared with itself and for a margin outside 0 to 1.
    """
    if not 0 < margin < 1:
        raise InvalidInput(f"margin: must be more than 0 and less than 1, not {margin:g}")
    outlines = await store.outlines()
    one, other = await find_sides(store, outlines, (first, second), experiment)
    if one == other:
        raise InvalidInput(
            f"{first} and {second} are the same model of the same experiment: "
            "write MODEL@EXPERIMENT to compare two experiments of one model"
        )
    if profile is not None:
        for _, outline in (one, other):
            await scored_by(store, [outline.experiment_id], profile)
    elif one[1].profile != other[1].profile:
        raise InvalidInput(
            f"{first} is scored by {one[1].profile}, {second} by {other[1].profile}: "
            "their figures do not compare; --profile names one that both have"
        )
    else:
        profile = one[1].profile
    ids = [one[1].experiment_id, other[1].experiment_id]
    sides = Compared(one[0], (one[1],)), Compared(other[0], (other[1],))
    return await _compared(store, sides, margin, profile, await common_profiles(store, ids))


async def fall(
    store: ResultStore,
    model_id: str,
    before: Sequence[ExperimentOutline],
    now: ExperimentOutline,
    *,
    with_copies: bool,
    profile: str | None = None,
) -> ModelDifference:
    """Compare a model in an experiment with the same model in earlier ones, taken together.

    The experiments `before`, newest first, are scored by one profile. `with_copies` keeps copies of
    older answers in. `profile` replaces the own ones. Raises InvalidInput for another profile than
    theirs, and NoScores for an experiment without scores by `profile`.
    """
    if profile is not None:
        for each in (now, *before):
            await scored_by(store, [each.experiment_id], profile)
    elif now.profile != before[0].profile:
        raise InvalidInput(
            f"{now.experiment_id} is scored by {now.profile}, the baseline "
            f"{before[0].experiment_id} by {before[0].profile}: their figures do not compare"
        )
    profile = profile or now.profile
    sides = Compared(model_id, tuple(before)), Compared(model_id, (now,))
    return await _compared(store, sides, MARGIN, profile, (profile,), with_copies=with_copies)


async def _compared(
    store: ResultStore,
    sides: tuple[Compared, Compared],
    margin: float,
    profile: str,
    profiles: tuple[str, ...],
    *,
    with_copies: bool = False,
) -> ModelDifference:
    ids = {each.experiment_id for side in sides for each in side.experiments}
    every = cells_under(await store.cells(ids), profile)
    cells = [side.of(every) for side in sides]
    tested, left_out = list(cells), 0
    if sides[0].model_id == sides[1].model_id and not with_copies:
        newer = max((0, 1), key=lambda number: sides[number].newest.created_at)
        copies, answers = copies_in(cells[newer])
        if 0 < copies < answers:
            left_out, experiment_id = copies, sides[newer].newest.experiment_id
            tested[newer] = await own_answers(store, experiment_id, cells[newer])
    return _difference(sides, cells, tested, left_out, margin, profile, profiles)


def _difference(
    sides: tuple[Compared, Compared],
    cells: Sequence[Sequence[Cell]],
    tested: Sequence[Sequence[Cell]],
    left_out: int,
    margin: float,
    profile: str,
    profiles: tuple[str, ...],
) -> ModelDifference:
    """Compare the scores in the cells `tested`; `cells` are all of each side."""
    first, second = map(_scores, sides, tested)
    composition = known_composition(profile)
    named = {*first.vectors, *second.vectors} - {OVERALL}
    vectors = composition.vectors or tuple(sorted(named))
    scores = first.of(OVERALL), second.of(OVERALL)
    overall = paired_difference(
        FigureSums.of(first, OVERALL, composition), FigureSums.of(second, OVERALL, composition)
    )
    split = split_variance(*scores)
    every = [_scores(side, each).of(OVERALL) for side, each in zip(sides, cells, strict=True)]
    on_answers = answer_cautions(sides[0].side, sides[1].side, [*cells[0], *cells[1]], profile)
    if left_out:
        on_answers.append(_on_copies(sides, left_out))
    if (weights := weights_sentence(profile)) is not None:
        on_answers.append(f"{weights} {_UPPER_BOUND}")
    notes = _notes(sides, overall.scenarios, on_answers)
    shared = _shared(every[0], every[1])
    return ModelDifference(
        first=_described(sides[0], cells[0], sum(every[0][each].scores for each in shared)),
        second=_described(sides[1], cells[1], sum(every[1][each].scores for each in shared)),
        profile=profile,
        profiles=profiles,
        scenarios=overall.scenarios,
        scenarios_shared=len(shared),
        scenarios_of_first=_scored(every[0]),
        scenarios_of_second=_scored(every[1]),
        figures=tuple(_pair(name, (first, second), composition) for name in (OVERALL, *vectors)),
        p_value=overall.p_value,
        is_real=overall.is_real,
        scenarios_to_tell=scenarios_to_tell(overall),
        repeats_to_tell=None if split is None else repeats_to_tell(overall, split),
        equivalence=EquivalenceFigures.of(overall, margin),
        variance=None if split is None else VarianceFigures.of(split),
        turns_kept=turns_kept_pair(
            (tested[0], tested[1]), (_question_of(sides[0]), _question_of(sides[1]))
        ),
        by_scenario=_by_scenario(sides[0].newest, *scores),
        left_out=left_out,
        note=" ".join(notes) or None,
        notes=tuple(notes),
    )


def _scores(side: Compared, cells: Sequence[Cell]) -> VectorScores[Question]:
    """Return the scores of each vector, by question."""
    return run_scores(cells, _question_of(side))


def _question_of(side: Compared) -> Callable[[Cell], Question]:
    """Return what a cell of a side was asked."""
    outlines = {each.experiment_id: each for each in side.experiments}
    said = {
        id_: {scenario.id: scenario.said for scenario in outline.scenarios}
        for id_, outline in outlines.items()
    }

    def question(cell: Cell) -> Question:
        id_ = cell.key.experiment_id
        scenario = outlines[id_].cluster_of(cell)
        return scenario, said[id_][scenario]

    return question


def _pair(
    name: str,
    scores: tuple[VectorScores[Question], VectorScores[Question]],
    composition: Composition,
) -> FigurePair:
    first, second = (FigureSums.of(each, name, composition) for each in scores)
    difference = paired_difference(first, second)
    common = set(first.own.scenarios) & set(second.own.scenarios)
    has_interval = difference.scenarios >= fewest_scenarios(name, composition)
    return FigurePair(
        name=name,
        first=_mean_of(first.own.among(common).means),
        second=_mean_of(second.own.among(common).means),
        difference=difference.mean,
        interval=difference.interval if has_interval else None,
    )


def _scored(scores: Mapping[Question, RunScores]) -> int:
    return sum(each.mean is not None for each in scores.values())


def _shared(
    first: Mapping[Question, RunScores], second: Mapping[Question, RunScores]
) -> list[Question]:
    """Return what both have a score on."""
    return [
        each
        for each in first.keys() & second.keys()
        if first[each].mean is not None and second[each].mean is not None
    ]


def _mean_of(means: Sequence[float]) -> float | None:
    return sum(means) / len(means) if means else None


def _by_scenario(
    outline: ExperimentOutline,
    first: Mapping[Question, RunScores],
    second: Mapping[Question, RunScores],
) -> tuple[ScenarioPair, ...]:
    pairs = []
    for scenario in outline.scenarios:
        question = (scenario.id, scenario.said)
        one, other = first.get(question, RunScores()).mean, second.get(question, RunScores()).mean
        if one is not None and other is not None:
            pairs.append(
                ScenarioPair(
                    scenario_id=scenario.id,
                    dimension=scenario.dimension,
                    first=one,
                    second=other,
                    difference=one - other,
                )
            )
    return tuple(sorted(pairs, key=lambda pair: (-abs(pair.difference), pair.scenario_id)))


def _described(side: Compared, cells: Sequence[Cell], scored: int) -> Side:
    outline = side.newest
    reused, answers = copies_in(cells)
    return Side(
        model_id=side.model_id,
        model_name=model_of(side.side).display_name,
        experiment_id=outline.experiment_id,
        title=outline.title,
        created_at=outline.created_at,
        conditions_id=outline.conditions_id,
        answers=answers,
        reused=reused,
        scored=scored,
    )


def _on_copies(sides: tuple[Compared, Compared], left_out: int) -> str:
    newer = max(sides, key=lambda side: side.newest.created_at).newest.experiment_id
    copies = "1 answer is a copy" if left_out == 1 else f"{left_out} answers are copies"
    return f"{copies} of older ones in {newer}: no figure here holds them."


def _notes(
    sides: tuple[Compared, Compared], scenarios: int, on_answers: Sequence[str]
) -> list[str]:
    sentences = list(on_answers)
    if scenarios < FEWEST_CLUSTERS:
        counted = (
            "1 common scenario has" if scenarios == 1 else f"{scenarios} common scenarios have"
        )
        sentences.append(
            f"{FEWEST_CLUSTERS} scenarios are the fewest that tell two models apart; "
            f"{counted} a score of both."
        )
    if sides[0].newest.conditions_id != sides[1].newest.conditions_id:
        sentences.append(
            "The two experiments differ in their test conditions (scenarios, prompts, "
            "parameters or student): the difference is that of models and conditions together."
        )
    return sentences
