"""The columns of a validity report: figures per response, by a profile or by an LLM judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from socratic_bench.errors import InvalidInput
from socratic_bench.research.labelled import LabelledResponse, TutorTurn
from socratic_bench.results.leaderboard.baseline import CONSTANT_REPLY
from socratic_bench.scoring.exchange import Exchange
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
class GuardedProfile(Profile, Protocol):
    """A profile whose overall has guards besides its vectors."""

    def guards(self, exchange: Exchange) -> Mapping[str, float]:
        """Return the figures of the guards, and of the overall without one, by name."""
        ...


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
        self._turns = [list(each.turns()) for each in responses]
        self._scores = [[_scored(turn, turn.text, name) for turn in each] for each in self._turns]
        self.constant = [
            _mean(_scored(turn, CONSTANT_REPLY, name).overall for turn in each)
            for each in self._turns
        ]

    @property
    def unscored(self) -> int:
        """The responses and dialogues without a score."""
        return sum(each is None for each in self.column(OVERALL))

    def column(self, vector: str) -> Figures:
        """Return the figures of one vector or of the overall; None: unscored.

        A dialogue's figure is the mean of its tutor's turns.
        """
        return [_mean(turn[vector] for turn in each) for each in self._scores]

    def columns(self) -> dict[str, Figures]:
        """Return the overall, each vector and each guard, by `profile vector`."""
        names = (OVERALL, *self.profile.vectors)
        columns = {each: self.column(each) for each in names} | self._guards()
        return {column_name(self.name, each): figures for each, figures in columns.items()}

    def without(self, vector: str) -> Figures | None:
        """Return the overall without one vector; None where the profile cannot tell."""
        place = self.profile.vectors.index(vector)
        profile = self.profile
        if isinstance(profile, AblatableProfile):
            return [
                _mean(
                    profile.overall_without(vector, tuple(turn.vectors.values()))
                    for turn in each
                    if turn.vectors is not None
                )
                for each in self._scores
            ]
        if combining(profile) is not None or len(profile.vectors) == 1:
            return None
        return [_mean(_mean_without(turn, place) for turn in each) for each in self._scores]

    def _guards(self) -> dict[str, Figures]:
        profile = self.profile
        if not isinstance(profile, GuardedProfile):
            return {}
        found = [
            [
                profile.guards(
                    Exchange(scored.visible_text, None, turn.student_message, turn.earlier)
                )
                for turn, scored in zip(turns, scores, strict=True)
                if scored.scored
            ]
            for turns, scores in zip(self._turns, self._scores, strict=True)
        ]
        names = dict.fromkeys(name for each in found for turn in each for name in turn)
        return {name: [_mean(turn[name] for turn in each) for each in found] for name in names}


def column_name(profile: str, vector: str) -> str:
    """Return the name of a column, such as `socratic-v2 guide`."""
    return f"{profile} {vector}"


def dimension_of(label: str, profile: str, meant: Mapping[str, str]) -> str:
    """Return the column of a profile that is meant for a label: a dimension, or the overall.

    `meant` are the columns that the data assigns. Raises InvalidInput for one that the profile does
    not have.
    """
    vectors = profile_named(profile).vectors
    if label in meant:
        if meant[label] not in (OVERALL, *vectors):
            known = ", ".join((OVERALL, *vectors))
            raise InvalidInput(
                f"columns.{label}: {profile} has no column {meant[label]!r}; it has: {known}"
            )
        return column_name(profile, meant[label])
    vector = DIMENSIONS.get(label, OVERALL)
    return column_name(profile, vector if vector in vectors else OVERALL)


def _scored(turn: TutorTurn, text: str, profile: str) -> Score:
    return score(
        text,
        student_message=turn.student_message,
        earlier_turns=turn.earlier,
        profile=profile,
    )


def _mean(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) / len(known) if known else None


def _mean_without(scored: Score, place: int) -> float | None:
    if scored.vectors is None:
        return None
    values = tuple(scored.vectors.values())
    return overall((*values[:place], None, *values[place + 1 :]), None)
