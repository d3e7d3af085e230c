"""A scored response, as a fact that is stored once and folded into its cell."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import Run
from socratic_bench.scoring.statuses import Status


class ScoredResponse(BaseModel):
    """The vectors of one response under one profile, or that it has none, and what it took."""

    model_config = ConfigDict(frozen=True)

    run: Run
    turn: int = Field(ge=1)
    last_turn: bool
    profile: str
    status: Status
    vectors: dict[str, float] | None = None
    """0.0 to 1.0 each, unrounded; None: unscored, which is not zero."""

    overall: float | None = None
    usage: Usage = Usage()
    latency_ms: int | None = None
    cost_nanodollars: int | None = None
