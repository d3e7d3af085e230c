"""A run: one model x one scenario x one repeat, the unit that is planned, done or failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

MOST_TURNS: Final = 2**31 - 1
"""What a column of 32 bits holds."""


class Run(BaseModel):
    """Which run something belongs to. Every event of a run carries it."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    """The run's id, derived from the experiment, the model, the scenario and the repeat."""

    experiment_id: str
    """The experiment whose plan has the run."""

    model_id: str
    """The model under test, as `provider/name`."""

    scenario_id: str
    """The scenario that the model is given."""

    dimension: str
    """The scenario's testing condition."""

    repeat: int = Field(ge=1)
    """Which repeat of the model and the scenario this is, from 1."""


def batches(runs: Iterable[Run], size: int) -> Iterator[list[Run]]:
    """`runs` in order, `size` at a time, however many there are."""
    remaining = iter(runs)
    while batch := list(islice(remaining, size)):
        yield batch


class RunFailure(BaseModel):
    """A run that gave no response after all its tries."""

    model_config = ConfigDict(frozen=True)

    run: Run
    """The run that failed."""

    turn: int = Field(ge=1, le=MOST_TURNS)
    """The turn it failed at."""

    profile: str
    """The profile its responses would have been scored by."""

    kind: str
    """The class of the failure, such as `rate_limited`."""

    message: str
    """What the provider said."""

    attempts: int = Field(ge=0)
    """Calls that were made; 0 where the model could not be called at all."""
