"""A run: one model x one scenario x one repeat, the unit that is planned, done or failed."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Run(BaseModel):
    """Which run something belongs to. Every event of a run carries it."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    experiment_id: str
    model_id: str
    scenario_id: str
    dimension: str
    repeat: int = Field(ge=1)


class RunFailure(BaseModel):
    """A run that gave no response after all its tries."""

    model_config = ConfigDict(frozen=True)

    run: Run
    turn: int = Field(ge=1)
    """The turn it failed at."""

    profile: str
    """The profile its responses would have been scored by."""

    kind: str
    """The class of the failure, such as `rate_limited`."""

    message: str
    """What the provider said."""

    attempts: int = Field(ge=0)
    """Calls that were made; 0 where the model could not be called at all."""
