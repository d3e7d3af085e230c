"""A scored response: a fact that the store keeps once and folds into its cell."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import MOST_MILLISECONDS, MOST_NANODOLLARS, MOST_TURNS, Run
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import MOST_COUNT, MOST_VECTORS

UnitScore = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A score on the only scale; a value outside of it would spoil every mean."""

Count = Annotated[int, Field(ge=0, le=MOST_COUNT)]


def _bounded(entries: object) -> object:
    """Refuse too many entries before any value is read; each bad value would be a mistake."""
    if isinstance(entries, dict) and len(entries) > MOST_VECTORS:
        raise ValueError(f"must have at most {MOST_VECTORS:,} entries, not {len(entries):,}")
    return entries


_Bounded = BeforeValidator(_bounded)


class ScoredResponse(BaseModel):
    """The vectors of one response under one profile, with its tokens, latency and cost."""

    model_config = ConfigDict(frozen=True)

    run: Run
    """The run that the response belongs to."""

    turn: int = Field(ge=1, le=MOST_TURNS)
    """The turn of the run, from 1."""

    last_turn: bool
    """Whether this turn ends its run."""

    profile: str
    """The profile that scored the response."""

    status: Status
    """Whether the response is complete, cut off, refused or empty, or the call failed."""

    error_kind: str | None = Field(default=None, max_length=40)
    """The kind of `error`, where a response came all the same; `ungraded` for a response without
    the grade that its profile needs."""

    vectors: (
        Annotated[dict[str, UnitScore | None], Field(max_length=MOST_VECTORS), _Bounded] | None
    ) = None
    """0.0 to 1.0 each, unrounded; None for a vector that does not apply to this response. None
    instead of the mapping: unscored, which is not zero."""

    overall: UnitScore | None = None
    """The profile's overall score, unrounded; None: unscored."""

    counts: Annotated[dict[str, Count], Field(max_length=MOST_VECTORS), _Bounded] = Field(
        default_factory=dict, exclude_if=lambda counts: not counts
    )
    """The profile's counts in the response and the answer's notes, by name; left out without."""

    usage: Usage = Usage()
    """Tokens as the provider counted them."""

    latency_ms: int | None = Field(default=None, ge=0, le=MOST_MILLISECONDS)
    """The latency of the call; a reference tutor simulates it."""

    cost_nanodollars: int | None = Field(default=None, ge=0, le=MOST_NANODOLLARS)
    """The price of the call, in billionths of a dollar; None: unknown."""
