"""The state of an experiment: a person's decision, which lets its calls begin or not."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ExperimentState(StrEnum):
    """A person's decision about an experiment."""

    OPEN = "open"
    PAUSED = "paused"
    RESUMED = "resumed"
    """Open; the reconciler has not yet requested its runs again."""

    CANCELLED = "cancelled"
    DELETED = "deleted"
    """A tombstone: the store deletes its facts, and late facts change nothing."""

    @classmethod
    def _missing_(cls, value: object) -> ExperimentState:
        """Treat a state of a newer version as paused: no call begins."""
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
"""The states that each state may be reached from."""


def decided(
    present: ExperimentState, to: ExperimentState, *, has_requests: bool
) -> ExperimentState:
    """Return the state after a person's decision: the present one if it does not allow `to`.

    `has_requests` tells whether services carry the experiment out and have not completed it;
    without requests to repeat, a resumed experiment is open.
    """
    if present not in LEFT_FOR[to]:
        return present
    if to is ExperimentState.RESUMED and not has_requests:
        return ExperimentState.OPEN
    return to


def standing(state: ExperimentState, *, is_complete: bool, is_exhausted: bool) -> str:
    """Return the word under which an experiment is counted: its state, or how it is doing."""
    if state is ExperimentState.DELETED:
        return state
    if is_complete:
        return "complete"
    if not state.calls_may_begin:
        return state
    return "exhausted" if is_exhausted else "running"


def stopped_sentence(experiment_id: str, state: ExperimentState) -> str:
    """Say why a stopped experiment is not carried out, and the remedy."""
    if state is ExperimentState.DELETED:
        return (
            f"experiment {experiment_id} was deleted: "
            "give CONFIG another `occasion` to run it again"
        )
    return (
        f"experiment {experiment_id} is {state}: `socratic-bench resume {experiment_id}` "
        "continues it"
    )
