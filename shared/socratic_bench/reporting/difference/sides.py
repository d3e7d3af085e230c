"""The two sides of a comparison: a model, in its experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from socratic_bench.domain.aggregates.cell import Cell
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import UnknownExperiment, UnknownModel
from socratic_bench.reporting.experiment_choice import find_experiment
from socratic_bench.reporting.result_store import ResultStore

MOST_NAMED: Final = 5
"""The most models that an error names."""

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
    both = [each for each in outlines if set(texts) <= set(each.model_ids)]
    found = [await _find_side(store, both or outlines, outlines, text) for text in texts]
    return found[0], found[1]


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
        if model in outline.model_ids:
            return model, outline
        raise UnknownModel(_unknown(model, f"experiment {named}", outline.model_ids))
    if named_experiment := await _experiment_called(store, text):
        return _only_model(text, named_experiment), named_experiment
    known = dict.fromkeys(id_ for outline in outlines for id_ in outline.model_ids)
    raise UnknownModel(_unknown(text, "this store" if len(outlines) != 1 else "it", list(known)))


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


def _unknown(model: str, where: str, known: Sequence[str]) -> str:
    named = ", ".join(known[:MOST_NAMED]) + (", \u2026" if len(known) > MOST_NAMED else "")
    return f"there is no model {model!r} in {where}; there are: {named or 'none'}"
