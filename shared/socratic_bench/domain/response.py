"""A response: the tutor's text, and everything true about how it came."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, PlainSerializer

from socratic_bench.domain.run import MOST_TURNS, Run
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.score import MOST_TOKENS
from socratic_bench.scoring.statuses import Status


class Usage(BaseModel):
    """Tokens as the provider counted them. None: it gave no count."""

    model_config = ConfigDict(frozen=True)

    visible_output_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    """Output tokens a student sees; reasoning is not among them."""

    reasoning_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    """Output tokens of reasoning, which a student does not see."""

    input_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    """Input tokens in all, cached ones included."""

    unsplit_output_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    """Output tokens in all, of a reply with reasoning that its provider did not count apart: then
    the visible ones are unknown, and reasoning is not in `reasoning_tokens`."""

    @property
    def output_tokens(self) -> int | None:
        """Output tokens in all, as they are paid for; None where there is no count."""
        if self.unsplit_output_tokens is not None:
            return self.unsplit_output_tokens
        visible = self.visible_output_tokens
        return None if visible is None else visible + self.reasoning_tokens


def _bounded(turns: tuple[EarlierTurn, ...]) -> tuple[EarlierTurn, ...]:
    for turn in turns:
        if turn.visible_tokens is not None and not 0 <= turn.visible_tokens <= MOST_TOKENS:
            raise ValueError(f"visible_tokens must be from 0 to {MOST_TOKENS:,}")
    return turns


def _known_fields(turns: tuple[EarlierTurn, ...]) -> list[dict[str, str | int]]:
    """The turns without the fields that are not known: events of before had none."""
    return [
        {name: value for name, value in asdict(turn).items() if value is not None} for turn in turns
    ]


class Response(BaseModel):
    """What a tutor answered in one turn of a run. Stored before anything else happens to it."""

    model_config = ConfigDict(frozen=True)

    run: Run
    """The run that the turn belongs to."""

    turn: int = Field(ge=1, le=MOST_TURNS)
    """The turn of the run, from 1."""

    last_turn: bool
    """Whether this turn ends its run."""

    profile: str
    """The profile to score it by."""

    student_message: str
    """What the student said in this turn."""

    earlier_turns: Annotated[
        tuple[EarlierTurn, ...],
        FailFast(),
        AfterValidator(_bounded),
        PlainSerializer(_known_fields, when_used="json"),
    ] = ()
    """The turns before this one, oldest first."""

    text: str
    """The tutor's response."""

    status: Status
    """Whether the response is complete, cut off, refused or empty, or the call failed."""

    error_kind: str | None = Field(default=None, max_length=40)
    """Which kind of `error` the status is: `unfinished`, for the reason in `stop_reason`. It has a
    field of its own, so that versions that do not know the kind leave it unscored too."""

    usage: Usage = Usage()
    """Tokens as the provider counted them."""

    latency_ms: int | None = Field(default=None, ge=0)
    """How long the call took; a reference tutor's is simulated."""

    first_token_ms: int | None = Field(default=None, ge=0)
    """How long its first piece of text or reasoning took; None where the reply came whole."""

    cost_nanodollars: int | None = Field(default=None, ge=0)
    """The price of the call, in billionths of a dollar. None: the price is unknown, which is not
    zero."""

    stop_reason: str | None = None
    """Why the model stopped, in the provider's own word."""

    model_version: str | None = None
    """The version the provider says it served."""

    attempts: int = Field(default=1, ge=1)
    """Calls that were made for this turn."""

    recorded_at: datetime
    """When the runner recorded the response."""

    adopted_from: str | None = None
    """The run of another experiment that this was asked in; None: it was asked in its own."""

    @property
    def charged_nanodollars(self) -> int | None:
        """What its experiment pays for it: nothing where another one has; None: not known."""
        return self.cost_nanodollars if self.adopted_from is None else 0
