"""A scored response, as a fact that is stored once and folded into its cell."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import MOST_TURNS, Run
from socratic_bench.scoring.statuses import Status

MOST_VECTORS: Final = 1000

UnitScore = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A score on the only scale there is: what is outside of it would spoil every mean it is in."""


class ScoredResponse(BaseModel):
    """The vectors of one response under one profile, or that it has none, and what it took."""

    model_config = ConfigDict(frozen=True)

    run: Run
    turn: int = Field(ge=1, le=MOST_TURNS)
    last_turn: bool
    profile: str
    status: Status
    error_kind: str | None = Field(default=None, max_length=40)
    """Which kind of `error` the status is, where a response came all the same."""

    vectors: Annotated[dict[str, UnitScore | None], Field(max_length=MOST_VECTORS)] | None = None
    """0.0 to 1.0 each, unrounded, or None where a vector does not apply to this response. None for
    all: unscored, which is not zero."""

    overall: UnitScore | None = None
    usage: Usage = Usage()
    latency_ms: int | None = None
    cost_nanodollars: int | None = None
