"""`/runs/{run_id}`: one run, as a summary and turn by turn."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, make_ready, ready_response
from socratic_api.endpoints import ApiEndpoint
from socratic_api.routes.query import (
    OFFSET_LIMIT,
    PROFILE,
    chosen_profile,
    next_offset,
    page_of,
    page_within,
    whole_number,
)
from socratic_api.routes.run_context import RunContext, RunStore, run_context
from socratic_api.score_shapes import ScoreAnswer
from socratic_api.scoring import shown_score
from socratic_bench.domain.money import NANODOLLARS_PER_DOLLAR
from socratic_bench.domain.response import Response as StoredResponse
from socratic_bench.errors import InvalidInput
from socratic_bench.results.experiment_choice import common_profiles
from socratic_bench.results.leaderboard.answer_sentences import told_of
from socratic_bench.results.transcripts import Transcript, Turn, transcript_of
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import OVERALL

_PAGE = 20
_PAGE_LIMIT = 100
_ID_LIMIT = 200


class RunFailed(BaseModel):
    """Why a run has no further response."""

    model_config = ConfigDict(frozen=True)

    turn: int
    """The turn that the run failed at."""

    kind: str
    """The class of the failure, such as `rate_limited`."""

    message: str
    attempts: int


class RunSummary(BaseModel):
    """One run: one model, one scenario, one repeat."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    experiment_id: str
    model_id: str
    scenario_id: str
    dimension: str
    repeat: int
    turns: int
    """Stored responses; 0 before the first, and for a run that failed before it."""

    scored_turns: int
    statuses: tuple[Status, ...]
    """The status of each response, in order."""

    turn_scores: tuple[float | None, ...]
    """The overall score of each response, in order; null for a response without one."""

    scores: dict[str, float | None]
    """`overall` and each vector: the mean over the scored responses, 0.0 to 1.0; null without
    one."""

    total_input_tokens: int | None
    """The total that the provider counted; null without a count. The same holds below."""

    total_visible_output_tokens: int | None
    total_cost_usd: float | None
    total_latency_ms: int | None
    attempts: int
    """Calls of the model for the stored responses, and for the turn that failed."""

    failure: RunFailed | None


class RunDetails(RunSummary):
    """One run with the plan around it."""

    profile: str | None
    """The profile of the scores here."""

    profiles: tuple[str, ...]
    """The profiles that the experiment has scores by, its own one first."""

    context: RunContext | None
    """Null for a run whose experiment the store no longer has."""


class RunTurn(BaseModel):
    """One stored response, and why it scored as it did."""

    model_config = ConfigDict(frozen=True)

    turn: int
    student_message: str
    text: str
    """What the tutor said."""

    score: ScoreAnswer
    """Computed from the stored response, by the profile of its experiment or the requested one."""

    error_kind: str | None
    input_tokens: int | None
    visible_output_tokens: int | None
    reasoning_tokens: int | None
    latency_ms: int | None
    first_token_ms: int | None
    cost_usd: float | None
    stop_reason: str | None
    model_version: str | None
    routed_to: str | None
    """The provider that a router chose for the reply."""

    reply_id: str | None
    """The provider's id of the reply."""

    reasoning: str | None
    """Thoughts that stood within the text; they are not scored. Null without."""

    notes: tuple[str, ...]
    """What a reader has to know about the answer, in words."""

    attempts: int
    recorded_at: datetime


class RunTurns(BaseModel):
    """The turns of a run, oldest first."""

    model_config = ConfigDict(frozen=True)

    run_id: str
    profile: str | None
    """The profile of the scores here."""

    turns: tuple[RunTurn, ...]
    total: int = Field(ge=0)
    """The number of all turns of the run."""

    offset: int
    next_offset: int | None
    """Where the next page begins; null after the last."""


def endpoints(store: RunStore) -> list[ApiEndpoint]:
    """Return the endpoints of one run. A run may still grow, so each request reads the store."""

    async def summarise_run(request: Request) -> Response:
        profile = chosen_profile(request)
        found = await transcript_of(store, _run_id(request), profile)
        details = RunDetails(
            **dict(run_summary(found)),
            profile=profile or found.own_profile,
            profiles=await common_profiles(store, [found.run.experiment_id]),
            context=await run_context(store, found.run),
        )
        return ready_response(request, make_ready(to_json(details), JSON))

    async def list_turns(request: Request) -> Response:
        offset = whole_number(request, "offset", default=0, low=0, high=OFFSET_LIMIT)
        limit = whole_number(request, "limit", default=_PAGE, low=1, high=_PAGE_LIMIT)
        profile = chosen_profile(request)
        found = await transcript_of(store, _run_id(request), profile)
        turns = page_within(map(_turn, found.turns[offset : offset + limit]))
        page = RunTurns(
            run_id=found.run.run_id,
            profile=profile or found.own_profile,
            turns=turns,
            total=len(found.turns),
            offset=offset,
            next_offset=next_offset(offset, len(turns), len(found.turns)),
        )
        return ready_response(request, make_ready(to_json(page), JSON))

    problems = {
        404: "The store has no response and no failure of this run",
        422: "A parameter is out of bounds, the id is none, or no score is by the profile",
        503: "The store does not answer",
    }
    return [
        ApiEndpoint(
            "/runs/{run_id}/summary",
            summarise_run,
            "One run: its scores, what it took and cost, its failure, and the plan around it",
            RunDetails,
            parameters=(PROFILE,),
            problems=problems,
        ),
        ApiEndpoint(
            "/runs/{run_id}/turns",
            list_turns,
            "What was said in a run, with the evidence for each score",
            RunTurns,
            parameters=(PROFILE, *page_of(_PAGE, _PAGE_LIMIT)),
            problems=problems,
        ),
    ]


def _run_id(request: Request) -> str:
    run_id: str = request.path_params["run_id"]
    if len(run_id) > _ID_LIMIT or not run_id.isprintable():
        raise InvalidInput("run_id: longer than any id, or with characters that no id has")
    return run_id


def run_summary(found: Transcript) -> RunSummary:
    """Return the summary of a run from its transcript."""
    run, responses = found.run, [turn.response for turn in found.turns]
    scored = [turn.score for turn in found.turns if turn.score.scored]
    names = dict.fromkeys(name for each in scored for name in each) or {OVERALL: None}
    failure = found.failure
    attempts = sum(each.attempts for each in responses)
    if failure is not None and failure.turn > len(responses):
        attempts += failure.attempts
    return RunSummary(
        run_id=run.run_id,
        experiment_id=run.experiment_id,
        model_id=run.model_id,
        scenario_id=run.scenario_id,
        dimension=run.dimension,
        repeat=run.repeat,
        turns=len(responses),
        scored_turns=len(scored),
        statuses=tuple(turn.score.status for turn in found.turns),
        turn_scores=tuple(turn.score.overall for turn in found.turns),
        scores={name: _mean([each.get(name) for each in scored]) for name in names},
        total_input_tokens=_total([each.usage.input_tokens for each in responses]),
        total_visible_output_tokens=_total(
            [each.usage.visible_output_tokens for each in responses]
        ),
        total_cost_usd=_dollars(_total([each.cost_nanodollars for each in responses])),
        total_latency_ms=_total([each.latency_ms for each in responses]),
        attempts=attempts,
        failure=None
        if failure is None
        else RunFailed(
            turn=failure.turn,
            kind=failure.kind,
            message=failure.message,
            attempts=failure.attempts,
        ),
    )


def _turn(turn: Turn) -> RunTurn:
    response = turn.response
    return RunTurn(
        turn=response.turn,
        student_message=response.student_message,
        text=response.text,
        score=ScoreAnswer.model_validate(shown_score(turn.score)),
        error_kind=response.error_kind,
        cost_usd=_dollars(response.cost_nanodollars),
        stop_reason=response.stop_reason,
        model_version=response.model_version,
        routed_to=response.routed_to,
        reply_id=response.reply_id,
        reasoning=response.reasoning,
        notes=tuple(told_of(response)),
        attempts=response.attempts,
        recorded_at=response.recorded_at,
        **_took(response),
    )


def _took(response: StoredResponse) -> dict[str, int | None]:
    usage = response.usage
    return {
        "input_tokens": usage.input_tokens,
        "visible_output_tokens": usage.visible_output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "latency_ms": response.latency_ms,
        "first_token_ms": response.first_token_ms,
    }


def _total(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _dollars(nanodollars: int | None) -> float | None:
    return None if nanodollars is None else nanodollars / NANODOLLARS_PER_DOLLAR
