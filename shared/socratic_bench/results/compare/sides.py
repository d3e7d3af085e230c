"""The two sides of a comparison, the worth of their difference, and its cautions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.answers import answers_in
from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.aggregates.difference import Difference, equivalence, scenarios_to_equate
from socratic_bench.domain.aggregates.variance import VarianceSplit
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import UnknownExperiment, UnknownModel
from socratic_bench.invalid_values import likely
from socratic_bench.results.experiment_choice import ResultStore, find_experiment
from socratic_bench.results.formats import printable
from socratic_bench.results.leaderboard.answer_sentences import (
    notes_beside,
    rulers_differ,
    sentences,
)
from socratic_bench.scoring.profile import SAME_RULER

ComparedSide = tuple[str, ExperimentOutline]
"""A model's id and its experiment."""


class Compared(NamedTuple):
    """A model in its experiment, or in several, newest first."""

    model_id: str
    experiments: tuple[ExperimentOutline, ...]

    @property
    def newest(self) -> ExperimentOutline:
        return self.experiments[0]

    @property
    def side(self) -> ComparedSide:
        """The model in the newest of its experiments."""
        return self.model_id, self.newest

    def of(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return those of these cells that are this model's."""
        ids = {each.experiment_id for each in self.experiments}
        return [
            cell
            for cell in cells
            if cell.key.experiment_id in ids and cell.key.model_id == self.model_id
        ]


def model_of(side: ComparedSide) -> TutorModel:
    """Return the model of a side as its experiment asked it."""
    model_id, outline = side
    return next(each for each in outline.models if each.id == model_id).model()


async def find_sides(
    store: ResultStore,
    outlines: Sequence[ExperimentOutline],
    texts: tuple[str, str],
    experiment: str | None,
) -> tuple[ComparedSide, ComparedSide]:
    """Find the two models, each `MODEL` or `MODEL@EXPERIMENT`, or an experiment of one model.

    `outlines` are newest first. Raises UnknownModel, UnknownExperiment, AmbiguousExperiment.
    """
    if experiment is not None:
        chosen = ExperimentOutline.of(await find_experiment(store, experiment))
        outlines = [chosen]
    first, second = (_id_of(text, outlines) for text in texts)
    texts = first, second
    both = [each for each in outlines if set(texts) <= set(each.model_ids)]
    found = [await _find_side(store, both or outlines, outlines, text) for text in texts]
    return found[0], found[1]


def _id_of(text: str, outlines: Sequence[ExperimentOutline]) -> str:
    """Return the id of the model that a text names in the newest experiment with it, or the text.

    The text may be an id, and may name an experiment.
    """
    if any(text in each.model_ids for each in outlines):
        return text
    models = (model for each in outlines for model in each.models)
    return next((each.id for each in models if each.model().display_name == text), text)


async def _find_side(
    store: ResultStore,
    preferred: Sequence[ExperimentOutline],
    outlines: Sequence[ExperimentOutline],
    text: str,
) -> ComparedSide:
    if outline := next((each for each in preferred if text in each.model_ids), None):
        return text, outline
    model, at, named = text.rpartition("@")
    if at:
        outline = ExperimentOutline.of(await find_experiment(store, named))
        model = _id_of(model, [outline])
        if model in outline.model_ids:
            return model, outline
        raise UnknownModel(_unknown(model, f"experiment {named}", [outline]))
    if named_experiment := await _experiment_called(store, text):
        return _only_model(text, named_experiment), named_experiment
    raise UnknownModel(_unknown(text, "this store" if len(outlines) != 1 else "it", outlines))


async def _experiment_called(store: ResultStore, text: str) -> ExperimentOutline | None:
    try:
        return ExperimentOutline.of(await find_experiment(store, text))
    except UnknownExperiment:
        return None


def _only_model(text: str, experiment: ExperimentOutline) -> str:
    """Return the model of an experiment of one. Raises UnknownModel for one of several."""
    first, *others = experiment.model_ids
    if not others:
        return first
    raise UnknownModel(
        f"{text!r} is an experiment of {len(others) + 1} models: write MODEL@{text} for one of "
        f"them, such as {first}@{text}"
    )


def _unknown(model: str, where: str, outlines: Sequence[ExperimentOutline]) -> str:
    models = dict.fromkeys(each for outline in outlines for each in outline.models)
    known = (text for each in models for text in (each.id, each.model().display_name))
    return f"there is no model {model!r} in {where}; {likely(model, known)}"


class EquivalenceFigures(BaseModel):
    """Whether the overall difference is too small to matter: two one-sided tests at 5 %."""

    model_config = ConfigDict(frozen=True)

    margin: float
    """The difference that is too small to matter."""

    interval: tuple[float, float] | None
    """90 %, paired by scenario; null with fewer than five scenarios. Within the margin, the models
    are equivalent."""

    p_value: float
    """Of the larger of both tests; 1 with fewer than five scenarios."""

    is_shown: bool
    """Whether the p value is at most 5 %."""

    scenarios_to_show: int | None
    """About how many scenarios like these would show the equivalence of models that do not differ,
    with 80 % power; null if unknown."""

    @classmethod
    def of(cls, difference: Difference, margin: float) -> EquivalenceFigures:
        found = equivalence(difference, margin)
        return cls(
            margin=margin,
            interval=found.interval,
            p_value=found.p_value,
            is_shown=found.is_shown,
            scenarios_to_show=scenarios_to_equate(difference, margin),
        )


class VarianceFigures(BaseModel):
    """The parts of the variance of a score, on the scale from 0 to 1 squared."""

    model_config = ConfigDict(frozen=True)

    scenario: float
    """What both models find hard or easy alike; pairing takes it out of the difference."""

    rest: float
    """How the models differ from scenario to scenario: more scenarios lessen its effect. Without
    repeats it holds their part."""

    repeat: float | None
    """How runs of one scenario differ: more repeats lessen its effect, and more scenarios do; null
    without repeats. Of runs with several turns it is an upper bound."""

    repeats: float
    """The runs of a model in a scenario, as a harmonic mean."""

    buy: Literal["scenarios", "repeats"] | None
    """The part that makes the difference uncertain: `repeats` where they account for more than half
    of its variance; null without repeats to go by."""

    @classmethod
    def of(cls, split: VarianceSplit) -> VarianceFigures:
        share = None if split.repeat is None else split.repeat / split.repeats
        return cls(
            scenario=split.scenario,
            rest=split.rest,
            repeat=split.repeat,
            repeats=split.repeats,
            buy=None if share is None else "repeats" if share > split.rest else "scenarios",
        )


def answer_cautions(
    one: ComparedSide, other: ComparedSide, cells: Sequence[Cell], profile: str
) -> list[str]:
    """Return the notes on the answers of both in sentences, and a caution for two rulers."""
    sides = [
        (model_of(side), answers_in(cell for cell in cells if _belongs(cell, side)))
        for side in (one, other)
    ]
    notes = [
        notes_beside(own, [beside], profile)
        for own, beside in zip(sides, reversed(sides), strict=True)
    ]
    named = dict(zip(_titles(one, other), notes, strict=True))
    told = sentences(named, len(named))
    if rulers_differ(notes):
        told.append(
            "Their lengths are by different rulers, so a difference in verbosity may be that of "
            f"the rulers: --profile {SAME_RULER} measures both alike."
        )
    return told


def _titles(one: ComparedSide, other: ComparedSide) -> tuple[str, str]:
    if one[0] != other[0]:
        return printable(one[0]), printable(other[0])
    return f"{printable(one[0])}@{one[1].experiment_id}", f"@{other[1].experiment_id}"


def _belongs(cell: Cell, side: ComparedSide) -> bool:
    return (cell.key.model_id, cell.key.experiment_id) == (side[0], side[1].experiment_id)
