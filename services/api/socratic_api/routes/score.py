"""`/api/score`: scores a text, or a batch of them, without a model."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from socratic_api.answers.ready_bytes import JSON
from socratic_api.endpoints import Endpoint
from socratic_api.http.bodies import (
    BODY_LIMIT,
    is_at_most,
    read_body,
    refuse_too_large,
    require_json,
)
from socratic_api.score_shapes import ScoreOrBatch, ScoreOrBatchAnswer
from socratic_api.scoring import (
    SMALL_BODY,
    Item,
    ScoringTurns,
    batch_answer,
    batch_answer_in_pieces,
    items_in,
    one_answer,
)


class _LargeAnswer(StreamingResponse):
    """The answer to a large batch; the next batch may begin once it is sent, or given up."""

    def __init__(self, turns: ScoringTurns, items: list[Item]) -> None:
        super().__init__(batch_answer_in_pieces(turns, items), media_type=JSON)
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._turns.leave_room()


def endpoints(turns: ScoringTurns) -> list[Endpoint]:
    """Return the endpoint of scoring; it stores nothing and calls no model."""

    async def score_texts(request: Request) -> Response:
        require_json(request)
        if is_at_most(request, SMALL_BODY):
            body = await read_body(request)
            return Response(await turns.small(partial(_answer, body)), media_type=JSON)
        refuse_too_large(request)
        await turns.make_room()
        try:
            response = await _large_answer(request)
        except BaseException:
            turns.leave_room()
            raise
        if not isinstance(response, _LargeAnswer):
            turns.leave_room()
        return response

    async def _large_answer(request: Request) -> Response:
        items = await turns.large(partial(items_in, await read_body(request)))
        if isinstance(items, list):
            return _LargeAnswer(turns, items)
        return Response(await turns.large(partial(one_answer, items)), media_type=JSON)

    return [
        Endpoint(
            "/api/score",
            score_texts,
            "Score a tutor's response, or up to 1,000 of them",
            ScoreOrBatchAnswer,
            method="POST",
            description='`{"text": …}` gives one score; `{"items": [{"text": …}, …]}` gives '
            '`{"scores": […]}` in the same order. A bad item has an `error` in its place. '
            "A record of the predecessor without a text gives its scores on 0.0 to 1.0. "
            ""
            "Nothing is stored, and no model is called. Where the service has keys, it takes one: "
            "`Authorization: Bearer KEY`.",
            accepts=ScoreOrBatch,
            problems={
                401: "The key is missing or not known",
                403: "A page of another site asked",
                408: "The body did not arrive in time",
                413: f"The body is larger than {BODY_LIMIT:,} bytes",
                415: "The body is not said to be JSON",
                422: "The body is not what can be scored; `detail` names the place",
                503: "Too many texts wait to be scored",
            },
        )
    ]


def _answer(body: bytes) -> bytes:
    items = items_in(body)
    return batch_answer(items) if isinstance(items, list) else one_answer(items)
