"""The shapes of the requests to `/api/score`, and of its answers."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, SkipValidation

from socratic_api.http.problems import Problem
from socratic_bench.domain.scenario import LONGEST_FORM, MOST_FORMS
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.score import MOST_TOKENS

CONVERTED: Final = "converted"
ITEM_LIMIT = 1000
TURN_LIMIT = 1000
TEXT_LIMIT = 1_000_000
"""Characters."""


class GivenTurn(BaseModel):
    """One turn before the scored one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    student: Annotated[str, Field(max_length=TEXT_LIMIT)]
    tutor: Annotated[str, Field(max_length=TEXT_LIMIT)]
    output_tokens: Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None = None
    """The provider's count of the tutor's visible output tokens."""

    status: Status | None = None
    """What became of the tutor's response; null: unknown."""


class ScoreRequest(BaseModel):
    """A tutor's response, and what a profile may want to know about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Annotated[str, Field(max_length=TEXT_LIMIT)]
    output_tokens: Annotated[float, Field(ge=0, le=MOST_TOKENS, allow_inf_nan=False)] | None = None
    """The provider's count of visible output tokens; without it words x 1.3 stand for it."""

    status: Status = Status.OK
    dimension: Annotated[str, Field(max_length=200)] | None = None
    student_message: Annotated[str, Field(max_length=TEXT_LIMIT)] = ""
    """What the student said in this turn: some profiles measure the response against it."""

    earlier_turns: Annotated[tuple[GivenTurn, ...], Field(max_length=TURN_LIMIT)] = ()
    """The turns before this one, oldest first."""

    answer_key: Annotated[
        tuple[Annotated[str, Field(max_length=LONGEST_FORM)], ...], Field(max_length=MOST_FORMS)
    ] = ()
    """The final answer, in each form that gives it away: some profiles look for it."""

    profile: Annotated[str, Field(max_length=200)] = CANONICAL


class ScoreBatch(BaseModel):
    """Up to 1,000 responses, each looked at by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: Annotated[list[SkipValidation[ScoreRequest]], Field(max_length=ITEM_LIMIT)]
    """Unvalidated: each is validated at its turn, so that a bad one loses no other."""


class OldRecord(RootModel[dict[str, Any]]):
    """A record of the predecessor, with scores from 0 to 100 in `scores` or beside other keys."""


class ScoreOrBatch(RootModel[ScoreRequest | ScoreBatch | OldRecord]):
    """One response, a batch of them, or a record of the predecessor."""


class ShownSpan(BaseModel):
    """A part of the text that a vector looked at, counted in code points, the end exclusive."""

    start: int
    end: int
    kind: str
    """One of the legend of the profile, at `/api/profiles`."""

    label: str


class ShownFact(BaseModel):
    """How one vector came to its score."""

    values: dict[str, float | str]
    """What enters the calculation, in order."""

    sentence: str
    word: str | None
    """The score in a word, such as `brief`."""


class ShownEvidence(BaseModel):
    """Why the figures are what they are."""

    spans: list[ShownSpan]
    """The first 1,000 of a kind; where there are more, a note says how many."""

    facts: dict[str, ShownFact]
    """Per vector."""

    notes: list[str]


class ScoreAnswer(BaseModel):
    """A score. Beside these keys stands one for each vector: 0.0 to 1.0, null if unscored."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float | None] = Field(init=False)

    overall: float | None
    status: Status
    visible_text: str | None = Field(default=None, exclude_if=lambda text: text is None)
    """What a student sees of the text, to which the spans belong; left out where it is the text."""

    evidence: ShownEvidence


class ConvertedAnswer(BaseModel):
    """The scores of a predecessor's record on the scale of 0.0 to 1.0; no text was scored."""

    scores: dict[str, float]
    status: Literal["converted"] = CONVERTED


class ItemProblem(BaseModel):
    """An item of a batch that could not be scored."""

    error: Problem


class BatchAnswer(BaseModel):
    """One score or error for each item, in order."""

    scores: list[ScoreAnswer | ConvertedAnswer | ItemProblem]


class ScoreOrBatchAnswer(RootModel[ScoreAnswer | ConvertedAnswer | BatchAnswer]):
    """A score for a response, converted scores for a record, a list of them for a batch."""
