"""A response: the tutor's text with its tokens, latency, cost and stop reason."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, PlainSerializer

from socratic_bench.domain.grading import Grading
from socratic_bench.domain.run import (
    MOST_ATTEMPTS,
    MOST_MILLISECONDS,
    MOST_NANODOLLARS,
    MOST_TURNS,
    Run,
)
from socratic_bench.domain.scenario import MOST_FORMS
from socratic_bench.scoring.answer_notes import counts_of
from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_bench.scoring.score import MOST_TOKENS

_Known = Field(exclude_if=lambda value: not value)
"""Left out of JSON where there is nothing to say, as in responses of earlier versions."""


class Usage(BaseModel):
    """Tokens as the provider counted them; None: no count."""

    model_config = ConfigDict(frozen=True)

    visible_output_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    """Output tokens that a student sees, without reasoning."""

    reasoning_tokens: int = Field(default=0, ge=0, le=MOST_TOKENS)
    """Output tokens of reasoning, which a student does not see."""

    input_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    """Input tokens in all, cached ones included."""

    unsplit_output_tokens: int | None = Field(default=None, ge=0, le=MOST_TOKENS)
    """Output tokens in all, where the provider did not count reasoning apart. Visible and reasoning
    tokens are then unknown."""

    cached_tokens: Annotated[int, _Known] = Field(default=0, ge=0, le=MOST_TOKENS)
    """Input tokens that came from the provider's cache."""

    cache_write_tokens: Annotated[int, _Known] = Field(default=0, ge=0, le=MOST_TOKENS)
    """Input tokens that the provider put into its cache."""

    def with_cache(self, cached: int | None, written: int | None) -> Usage:
        """Return the same with counts of its cache, unless they exceed the input."""
        counts = {"cached_tokens": cached or 0, "cache_write_tokens": written or 0}
        fit = 0 < sum(counts.values()) <= (self.input_tokens or 0)
        return self.model_copy(update=counts) if fit else self

    @property
    def output_tokens(self) -> int | None:
        """Billed output tokens; None without a count."""
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
    """Return the turns without null fields, which events of earlier versions lack."""
    return [
        {name: value for name, value in asdict(turn).items() if value is not None} for turn in turns
    ]


LONGEST_REPLY_ID: Final = 200
MOST_NOTES: Final = 40


class Response(BaseModel):
    """A tutor's response in one turn of a run. The runner stores it before it publishes it."""

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
    """The student's message in this turn."""

    earlier_turns: Annotated[
        tuple[EarlierTurn, ...],
        FailFast(),
        AfterValidator(_bounded),
        PlainSerializer(_known_fields, when_used="json"),
    ] = ()
    """The turns before this one, oldest first."""

    answer_key: Annotated[tuple[str, ...], FailFast(), Field(max_length=MOST_FORMS), _Known] = ()
    """The scenario's final answer, in each form that gives it away; left out without one."""

    text: str
    """The tutor's response."""

    status: Status
    """Whether the response is complete, cut off, refused or empty, or the call failed."""

    error_kind: str | None = Field(default=None, max_length=40)
    """The kind of `error`: `unfinished`, with the reason in `stop_reason`. It has its own field, so
    that versions that do not know the kind leave the response unscored too."""

    usage: Usage = Usage()
    """Tokens as the provider counted them."""

    latency_ms: int | None = Field(default=None, ge=0, le=MOST_MILLISECONDS)
    """The latency of the call; a reference tutor simulates it."""

    first_token_ms: int | None = Field(default=None, ge=0, le=MOST_MILLISECONDS)
    """The time to the first piece of text or reasoning; None where the reply came whole."""

    cost_nanodollars: int | None = Field(default=None, ge=0, le=MOST_NANODOLLARS)
    """The price of the call, in billionths of a dollar; None: unknown, which is not zero."""

    stop_reason: str | None = None
    """The provider's own word for why the model stopped."""

    model_version: str | None = None
    """The model version that the provider reports."""

    routed_to: Annotated[str | None, _Known] = None
    """The provider that a router chose for this reply, by the router's name for it."""

    reply_id: Annotated[str | None, _Known] = Field(default=None, max_length=LONGEST_REPLY_ID)
    """The provider's id of the reply: a cache sends the same one again."""

    reasoning: Annotated[str | None, _Known] = None
    """Thoughts that stood within the text, apart from it; None without. They are not scored."""

    notes: Annotated[tuple[str, ...], _Known] = Field(default=(), max_length=MOST_NOTES)
    """What the runner saw of the reply, by the names of `scoring.answer_notes`."""

    attempts: int = Field(default=1, ge=1, le=MOST_ATTEMPTS)
    """Calls for this turn."""

    recorded_at: datetime
    """When the runner recorded the response."""

    grading: Annotated[Grading | None, Field(exclude_if=lambda grading: grading is None)] = None
    """The model's grade of the response, in events alone: the store keeps gradings as responses of
    their own. None: not graded, as in experiments without a grader."""

    adopted_from: str | None = None
    """The run of another experiment that this response was copied from; None: its own run asked."""

    @property
    def as_earlier_turn(self) -> EarlierTurn:
        """The form of this turn in later turns of its run."""
        return EarlierTurn(
            student=self.student_message,
            tutor=self.text,
            visible_tokens=self.usage.visible_output_tokens,
            status=self.status,
        )

    def note_counts(self) -> dict[str, int]:
        """Return the notes on this answer, as `answer_notes.counts_of`; none for no answer."""
        if self.status not in (Status.OK, Status.TRUNCATED) or not self.text.strip():
            return {}
        return counts_of(
            self.text,
            finished=self.status is Status.OK,
            visible_tokens=self.usage.visible_output_tokens,
            version=self.model_version,
            wire=self.notes,
            asked_on=self.recorded_at.astimezone(UTC).date(),
            reused=self.adopted_from is not None,
        )

    @property
    def charged_nanodollars(self) -> int | None:
        """The cost to this experiment: 0 for an adopted response; None: unknown."""
        return self.cost_nanodollars if self.adopted_from is None else 0

    @property
    def reused_nanodollars(self) -> int:
        """The known cost of an adopted response to the experiment that asked; 0 for another one."""
        return 0 if self.adopted_from is None else self.cost_nanodollars or 0
