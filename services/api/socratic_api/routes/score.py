"""`/api/score`: scoring a text, or a batch of them, without a model."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel, SkipValidation, ValidationError
from pydantic_core import from_json, to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.bodies import BODY_LIMIT, read_body
from socratic_api.endpoints import JSON, Endpoint
from socratic_api.problems import Problem
from socratic_bench.errors import InvalidInput, UnknownProfile
from socratic_bench.scoring.profiles import CANONICAL
from socratic_bench.scoring.score import score
from socratic_bench.scoring.statuses import Status

ITEM_LIMIT = 1000
TEXT_LIMIT = 1_000_000
"""Characters."""

_SCORED_AT_ONCE = 16 * 1024
"""Bodies up to so many bytes are scored in less time than handing them to a thread is worth."""


class ScoreRequest(BaseModel):
    """A tutor's response, and what a profile may want to know about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Annotated[str, Field(max_length=TEXT_LIMIT)]
    output_tokens: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """The provider's count of visible output tokens; without it words x 1.3 stand for it."""

    status: Status = Status.OK
    dimension: Annotated[str, Field(max_length=200)] | None = None
    student_message: Annotated[str, Field(max_length=TEXT_LIMIT)] = ""
    profile: Annotated[str, Field(max_length=200)] = CANONICAL


class ScoreBatch(BaseModel):
    """Up to 1,000 responses, each looked at by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: Annotated[list[SkipValidation[ScoreRequest]], Field(max_length=ITEM_LIMIT)]
    """As they came: each is validated when its turn comes, so that a bad one loses no other."""


class ScoreOrBatch(RootModel[ScoreRequest | ScoreBatch]):
    """One response, or a batch of them."""


class Marker(BaseModel):
    """A marker where it stands in the text, counted in code points, the end exclusive."""

    start: int
    end: int
    kind: str
    marker: str


class Tokens(BaseModel):
    """Visible output tokens, and who counted them: `provider` or `words`."""

    count: float
    source: str


class FinalSentence(BaseModel):
    """The last sentence where it stands in the text."""

    start: int
    end: int
    text: str


class ShownEvidence(BaseModel):
    """Why the figures are what they are."""

    markers: list[Marker]
    tokens: Tokens
    final_sentence: FinalSentence | None
    arithmetic: dict[str, str]
    notes: list[str]


class ScoreAnswer(BaseModel):
    """A score. Beside these keys stands one for each vector: 0.0 to 1.0, null if unscored."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float | None] = Field(init=False)

    overall: float | None
    status: Status
    evidence: ShownEvidence


class ItemProblem(BaseModel):
    """An item of a batch that could not be scored."""

    error: Problem


class BatchAnswer(BaseModel):
    """One score or error for each item, in order."""

    scores: list[ScoreAnswer | ItemProblem]


class ScoreOrBatchAnswer(RootModel[ScoreAnswer | BatchAnswer]):
    """A score for a response, a list of them for a batch."""


def endpoints() -> list[Endpoint]:
    """Scoring; it stores nothing and calls no model."""

    async def score_texts(request: Request) -> Response:
        body = await read_body(request)
        if len(body) <= _SCORED_AT_ONCE:
            answer = _answer(body)
        else:
            answer = await asyncio.to_thread(_answer, body)
        return Response(answer, media_type=JSON)

    return [
        Endpoint(
            "/api/score",
            score_texts,
            "Score a tutor's response, or up to 1,000 of them",
            ScoreOrBatchAnswer,
            method="POST",
            description='`{"text": …}` gives one score; `{"items": [{"text": …}, …]}` gives '
            '`{"scores": […]}` in the same order. A bad item has an `error` in its place. '
            "Nothing is stored, and no model is called.",
            accepts=ScoreOrBatch,
            problems={
                408: "The body did not arrive in time",
                413: f"The body is larger than {BODY_LIMIT:,} bytes",
                422: "The body is not what can be scored; `detail` names the place",
            },
        )
    ]


def _answer(body: bytes) -> bytes:
    try:
        data = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"body: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidInput('body: must be an object such as {"text": "…"} or {"items": […]}')
    if "items" not in data:
        return to_json(_score_of(data, ""))
    try:
        batch = ScoreBatch.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(_first_mistake(error, "")) from None
    return to_json({"scores": [_score_or_problem(item, at) for at, item in enumerate(batch.items)]})


def _score_or_problem(item: object, at: int) -> dict[str, Any]:
    try:
        return _score_of(item, f"items.{at}")
    except InvalidInput as error:
        detail = str(error)
        problem = Problem(title="Unprocessable Content", status=422, detail=detail)
        return {"error": problem.model_dump()}


def _score_of(item: object, place: str) -> dict[str, Any]:
    try:
        asked = ScoreRequest.model_validate(item)
        scored = score(
            asked.text,
            output_tokens=asked.output_tokens,
            status=asked.status,
            dimension=asked.dimension,
            student_message=asked.student_message,
            profile=asked.profile,
        )
    except ValidationError as error:
        raise InvalidInput(_first_mistake(error, place)) from None
    except UnknownProfile as error:
        raise InvalidInput(f"{_within(place, 'profile')}: {error}") from None
    return scored.as_dict()


def _first_mistake(error: ValidationError, place: str) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = _within(place, *map(str, first["loc"])) or "body"
    more = error.error_count() - 1
    also = f" (and {more} more)" if more else ""
    return f"{where}: {first['msg']}{also}"


def _within(place: str, *steps: str) -> str:
    return ".".join(step for step in (place, *steps) if step)
