"""Whether calls of an experiment may begin: what a person decided, apart from being complete."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ExperimentState(StrEnum):
    """What somebody decided about an experiment."""

    OPEN = "open"
    PAUSED = "paused"
    RESUMED = "resumed"
    """Open, and the reconciler has not yet requested its runs again."""

    CANCELLED = "cancelled"
    DELETED = "deleted"
    """A tombstone: its facts are gone or going, and whatever comes late changes nothing."""

    @classmethod
    def _missing_(cls, value: object) -> ExperimentState:
        """In a state that only a newer version knows, no call begins here."""
        return cls.PAUSED

    @property
    def calls_may_begin(self) -> bool:
        """Whether a lease may be granted."""
        return self in MAY_CALL


MAY_CALL: Final = frozenset({ExperimentState.OPEN, ExperimentState.RESUMED})

LEFT_FOR: Final[Mapping[ExperimentState, frozenset[ExperimentState]]] = {
    ExperimentState.OPEN: frozenset({ExperimentState.RESUMED}),
    ExperimentState.PAUSED: MAY_CALL,
    ExperimentState.RESUMED: frozenset({ExperimentState.PAUSED, ExperimentState.CANCELLED}),
    ExperimentState.CANCELLED: MAY_CALL | {ExperimentState.PAUSED},
    ExperimentState.DELETED: MAY_CALL | {ExperimentState.PAUSED, ExperimentState.CANCELLED},
}
"""From which states each one may be reached."""


def stopped_sentence(experiment_id: str, state: ExperimentState) -> str:
    """Why an experiment is not carried out, and what to do about it."""
    if state is ExperimentState.DELETED:
        return (
            f"experiment {experiment_id} was deleted: give CONFIG another `occasion` to run it anew"
        )
    return (
        f"experiment {experiment_id} is {state}: `socratic-bench resume {experiment_id}` takes it "
        "up again"
    )
