"""The judge: an event in, an event out, and unscored responses are marked."""

from datetime import UTC, datetime

import pytest

from socratic_bench import score
from socratic_bench.adapters.clock import SystemClock
from socratic_bench.consuming.outcomes import Handled, Rejected, Work
from socratic_bench.domain.aggregates.cell import Cell, key_of_score
from socratic_bench.domain.grading import Grading
from socratic_bench.domain.response import Response, Usage
from socratic_bench.events.event_types import ResponseRecorded
from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_judge.handlers import ResponseRecordedHandler, judge
from tests.unit.events.examples import PLANNED as RUN
from tests.unit.scoring.broken_profiles import MEASURES, install_broken


def response(text="What might you try?", **changes) -> Response:
    fields = {
        "run": RUN,
        "turn": 1,
        "last_turn": True,
        "profile": "socratic-v1",
        "student_message": "Help?",
        "text": text,
        "status": "ok",
        "recorded_at": datetime(2026, 11, 21, tzinfo=UTC),
    }
    return Response(**{**fields, **changes})


def test_a_response_is_scored_by_the_providers_token_count():
    counted = judge(response(usage=Usage(visible_output_tokens=250)))
    assert counted.vectors["verbosity"] == 0.5
    assert judge(response()).vectors == score("What might you try?").vectors


def test_the_score_carries_what_the_aggregate_needs():
    scored = judge(response(latency_ms=12, cost_nanodollars=7, last_turn=False, turn=3))
    assert (scored.latency_ms, scored.cost_nanodollars) == (12, 7)
    assert (scored.turn, scored.last_turn, scored.run) == (3, False, RUN)


@pytest.mark.parametrize(
    ("text", "status", "judged"),
    [("no.", "refused", "refused"), ("  ", "ok", "empty"), ("Half an", "truncated", "truncated")],
)
def test_what_cannot_be_scored_has_a_status_and_no_figures(text, status, judged):
    scored = judge(response(text, status=status))
    assert (scored.status, scored.vectors, scored.overall) == (judged, None, None)


def test_a_reply_that_is_not_known_to_be_finished_keeps_its_kind_of_error():
    scored = judge(response("Perhaps?", status="error", error_kind="unfinished"))
    assert (scored.status, scored.error_kind, scored.overall) == ("error", "unfinished", None)


def test_a_profile_reads_the_key_the_status_and_the_statuses_of_the_earlier_turns():
    asked = EarlierTurn("Why?", "What do you see?", 9, Status.OK)
    refused = EarlierTurn("Why?", "No.", 9, Status.REFUSED)
    fields = {"profile": "fidelity-1", "turn": 2, "answer_key": ("0 N",)}
    scored = judge(response("It is 0 N, or what?", earlier_turns=(asked,), **fields))
    assert (scored.overall, scored.counts["key_said"], scored.counts["at_risk"]) == (0.0, 1, 1)
    lost = judge(response("It is 0 N, or what?", earlier_turns=(refused,), **fields))
    assert (lost.overall, lost.counts["key_said"], lost.counts["at_risk"]) == (0.0, 0, 0)
    cut_off = judge(response("What is", status="truncated", **fields))
    assert (cut_off.vectors, cut_off.overall) == ({"kept": None}, None)


def test_a_run_with_an_invented_id_gets_no_score():
    invented = RUN.model_copy(update={"run_id": RUN.run_id + " "})
    recorded = ResponseRecorded.of(response(run=invented), source="test")
    handler = ResponseRecordedHandler(SystemClock())
    outcome = handler._outcome(Work(recorded, 1))
    assert isinstance(outcome, Rejected)
    assert outcome.reason.startswith("not in the plan: the id")


def graded(**changes) -> Response:
    return response(profile="socratic-v1-llm", **changes)


def test_a_grade_and_the_heuristic_stand_in_one_score():
    scored = judge(graded(grading=Grading(score=0.3)))
    assert (scored.vectors["exploratory"], scored.vectors["exploratory_heuristic"]) == (0.3, 1.0)
    assert (scored.overall is not None, scored.error_kind) == (True, None)


def test_a_failed_grading_is_no_score_and_counts_as_ungraded():
    scored = judge(graded(grading=Grading(score=None, failure="timeout")))
    assert (scored.overall, scored.vectors["exploratory"], scored.error_kind) == (
        None,
        None,
        "ungraded",
    )
    assert scored.vectors["exploratory_heuristic"] == 1.0
    cell = Cell(key_of_score(scored), scored.run.dimension)
    cell.add_score(scored)
    assert (cell.statuses, cell.scored, cell.responses) == ({"ungraded": 1}, 0, 1)


async def test_a_response_that_nobody_graded_is_rejected_and_one_without_a_score_is_not():
    ungraded, refused = graded(), graded(status="refused")
    events = [ResponseRecorded.of(each, source="test") for each in (ungraded, refused)]
    rejected, handled = await outcomes_of(*events)
    assert isinstance(rejected, Rejected)
    assert "has no grading, and profile socratic-v1-llm needs one" in rejected.reason
    assert isinstance(handled, Handled)


async def outcomes_of(*events):
    works = [Work(event, 1) for event in events]
    return [
        outcome
        async for batch in ResponseRecordedHandler(SystemClock())(works)
        for outcome in batch
    ]


async def test_every_response_of_a_batch_gets_its_own_score_event():
    events = [ResponseRecorded.of(response(turn=turn), source="test") for turn in (1, 2)]
    outcomes = await outcomes_of(*events)
    assert [type(outcome) for outcome in outcomes] == [Handled, Handled]
    scored = [outcome.publish[0] for outcome in outcomes]
    assert [event.data.turn for event in scored] == [1, 2]
    assert [event.causationid for event in scored] == [event.id for event in events]


async def test_a_profile_this_version_does_not_know_is_rejected_by_name():
    event = ResponseRecorded.of(response(profile="socratic-v9"), source="test")
    (outcome,) = await outcomes_of(event)
    assert isinstance(outcome, Rejected)
    assert "socratic-v9" in outcome.reason


async def test_scoring_again_gives_the_same_event_id():
    event = ResponseRecorded.of(response(), source="test")
    first, second = await outcomes_of(event), await outcomes_of(event)
    assert first[0].publish[0].id == second[0].publish[0].id


@pytest.mark.parametrize(("body", "said"), MEASURES.values(), ids=MEASURES)
async def test_a_broken_profile_is_rejected_by_name_and_the_other_responses_are_scored(
    install, body, said
):
    install_broken(install, "measure", body)
    texts = [("A good one?", "broken-v1"), ("Why?", "broken-v1"), ("Why?", "socratic-v1")]
    good, bad, other = await outcomes_of(
        *(
            ResponseRecorded.of(response(text, profile=profile), source="test")
            for text, profile in texts
        )
    )
    assert isinstance(bad, Rejected)
    assert bad.reason.startswith(f"profile broken-v1 {said}")
    assert [type(good), type(other)] == [Handled, Handled]
