"""The columns of a validity report: figures per response, by a profile or by an LLM judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from socratic_bench.reporting.validity.gaming import CONSTANT
from socratic_bench.reporting.validity.labelled import LabelledResponse
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.profile import OVERALL, Profile, combining, overall
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.scoring.score import Score, score

Figures = Sequence[float | None]

DIMENSIONS: Final[Mapping[str, str]] = {
    "guidance": "guide",
    "mistake-id": "notice",
    "mistake-loc": "locate",
    "uptake": "ground",
}
"""The reading dimension that the definition means for a label. A report that picked the best of all
columns for each label would look better by chance."""


@runtime_checkable
class AblatableProfile(Profile, Protocol):
    """A profile that says what its overall would be without one of its vectors."""

    def overall_without(self, vector: str, values: tuple[float | None, ...]) -> float | None:
        """Return the overall without `vector`, given what `measure` returned."""
        ...


class ProfileColumns:
    """The figures of one profile for the responses of one set, in their order."""

    def __init__(self, name: str, responses: Sequence[LabelledResponse]) -> None:
        """Score the responses. Raises UnknownProfile, BrokenPlugin or BrokenProfile."""
        self.profile = profile_named(name)
        self.name = name
        self.scores = [_scored(each, each.text, name) for each in responses]
        self.constant = [_scored(each, CONSTANT, name).overall for each in responses]

    def column(self, vector: str) -> Figures:
        """Return the figures of one vector or of the overall; None: unscored."""
        return [each[vector] for each in self.scores]

    def columns(self) -> dict[str, Figures]:
        """Return the overall and each vector, by `profile vector`."""
        names = (OVERALL, *self.profile.vectors)
        return {column_name(self.name, each): self.column(each) for each in names}

    def without(self, vector: str) -> Figures | None:
        """Return the overall without one vector; None where the profile cannot tell."""
        place = self.profile.vectors.index(vector)
        if isinstance(self.profile, AblatableProfile):
            return [
                self.profile.overall_without(vector, tuple(each.vectors.values()))
                if each.vectors is not None
                else None
                for each in self.scores
            ]
        if combining(self.profile) is not None or len(self.profile.vectors) == 1:
            return None
        return [_mean_without(each, place) for each in self.scores]


def column_name(profile: str, vector: str) -> str:
    """Return the name of a column, such as `socratic-v2 guide`."""
    return f"{profile} {vector}"


def dimension_of(label: str, profile: str) -> str:
    """Return the column of a profile that is meant for a label: a dimension, or the overall."""
    vector = DIMENSIONS.get(label, OVERALL)
    known = vector in profile_named(profile).vectors
    return column_name(profile, vector if known else OVERALL)


def _scored(response: LabelledResponse, text: str, profile: str) -> Score:
    earlier = (EarlierTurn(response.context, ""),) if response.context else ()
    return score(
        text, student_message=response.student_message, earlier_turns=earlier, profile=profile
    )


def _mean_without(scored: Score, place: int) -> float | None:
    if scored.vectors is None:
        return None
    values = tuple(scored.vectors.values())
    return overall((*values[:place], None, *values[place + 1 :]), None)
