"""A cell depends on which facts it holds, and on nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.domain.aggregates.cell import (
    MILLIONTHS,
    Cell,
    CellKey,
    Tally,
    fold,
    key_of_failure,
    key_of_score,
    millionths,
)
from socratic_bench.domain.response import Usage
from socratic_bench.domain.run import Run, RunFailure
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.scoring.exchange import Status

RUN = Run(
    run_id="run-1",
    experiment_id="exp-1",
    model_id="reference/socratic",
    scenario_id="startup",
    dimension="ambiguous",
    repeat=1,
)
KEY = CellKey("exp-1", "reference/socratic", "startup", 1, "socratic-v1")

counts = st.integers(0, 10**11)
shares = st.floats(0, 1)


def _run(number: int) -> Run:
    return RUN.model_copy(update={"run_id": f"run-{number}", "repeat": number})


@st.composite
def scores_of(
    draw: st.DrawFn, run: Run, turn: int = 1, *, last_turn: bool = True
) -> ScoredResponse:
    scored = draw(st.booleans())
    names = st.sampled_from(["verbosity", "exploratory", "interrogative", "épreuve"])
    vectors: dict[str, float | None] = draw(st.dictionaries(names, shares, min_size=1))
    return ScoredResponse(
        run=run,
        turn=turn,
        last_turn=last_turn,
        profile="socratic-v1",
        status=draw(st.sampled_from([Status.OK, Status.TRUNCATED]))
        if scored
        else draw(st.sampled_from(list(Status))),
        vectors=vectors if scored else None,
        overall=draw(shares) if scored else None,
        usage=Usage(
            visible_output_tokens=draw(st.none() | counts),
            reasoning_tokens=draw(counts),
            input_tokens=draw(st.none() | counts),
        ),
        latency_ms=draw(st.none() | counts),
        cost_nanodollars=draw(st.none() | counts),
    )


@st.composite
def scores_of_one_cell(draw: st.DrawFn) -> list[ScoredResponse]:
    return [draw(scores_of(_run(number))) for number in range(1, draw(st.integers(1, 6)) + 1)]


def _failure(run: Run, turn: int = 1) -> RunFailure:
    return RunFailure(
        run=run, turn=turn, profile="socratic-v1", kind="timeout", message="no answer", attempts=3
    )


def _cell(scores: list[ScoredResponse]) -> Cell:
    cell = Cell(KEY, "ambiguous")
    for scored in scores:
        cell.add_score(scored)
    return cell


@given(st.data())
def test_the_order_of_scores_changes_no_byte(data: st.DataObject) -> None:
    scores = data.draw(scores_of_one_cell())
    shuffled = data.draw(st.permutations(scores))
    assert _cell(shuffled).to_json() == _cell(scores).to_json()


@given(scores_of_one_cell())
def test_adding_one_after_the_other_is_the_fold_of_all(scores: list[ScoredResponse]) -> None:
    assert fold(scores, []) == {KEY: _cell(scores)}


@given(scores_of_one_cell())
def test_a_cell_read_back_from_its_json_is_the_same_cell(scores: list[ScoredResponse]) -> None:
    cell = _cell(scores)
    read = Cell.from_json(cell.key, cell.dimension, cell.to_json())
    assert read == cell
    assert read.to_json() == cell.to_json()


@given(scores_of_one_cell(), st.integers(0, 6))
def test_merging_two_parts_gives_the_whole(scores: list[ScoredResponse], cut: int) -> None:
    merged = _cell(scores[:cut])
    merged.merge(_cell(scores[cut:]))
    assert merged.to_json() == _cell(scores).to_json()


@given(scores_of_one_cell())
def test_a_failure_taken_back_leaves_no_trace(scores: list[ScoredResponse]) -> None:
    cell = _cell(scores)
    before = cell.to_json()
    cell.add_failure()
    assert cell.to_json() != before
    cell.withdraw_failure()
    assert cell.to_json() == before


@given(scores_of_one_cell())
def test_a_cell_counts_every_response_and_every_score(scores: list[ScoredResponse]) -> None:
    cell = _cell(scores)
    assert cell.responses == cell.runs_ended == len(scores)
    assert cell.scored == sum(scored.overall is not None for scored in scores)


@given(st.data())
def test_a_failure_counts_only_if_the_run_did_not_end_with_a_response(
    data: st.DataObject,
) -> None:
    ended, failed = _run(1), _run(2)
    score = data.draw(scores_of(ended, turn=2))
    early = data.draw(scores_of(failed, last_turn=False))
    failures = [_failure(ended, turn=1), _failure(failed, turn=1)]
    cells = fold([score, early], data.draw(st.permutations(failures)))
    assert cells.keys() == {key_of_score(score), key_of_failure(failures[1])}
    assert sum(cell.runs_ended for cell in cells.values()) == 2
    assert cells[key_of_failure(failures[1])].statuses["error"] >= 1


def test_scores_are_summed_in_whole_millionths() -> None:
    scored = ScoredResponse(
        run=RUN,
        turn=1,
        last_turn=True,
        profile="socratic-v1",
        status=Status.OK,
        vectors={"verbosity": 0.1, "interrogative": 1.0},
        overall=1 / 3,
    )
    cell = _cell([scored] * 3)
    assert cell.vectors == {
        "verbosity": Tally(3, 300_000, 3 * 100_000**2),
        "interrogative": Tally(3, 3 * MILLIONTHS, 3 * MILLIONTHS**2),
        "overall": Tally(3, 999_999, 3 * 333_333**2),
    }
    assert millionths(0.000_000_5) == 0
    assert millionths(0.000_001_5) == 2


def test_a_reply_that_is_not_known_to_be_finished_counts_as_that_and_as_no_failed_run() -> None:
    scored = ScoredResponse(
        run=RUN,
        turn=1,
        last_turn=True,
        profile="socratic-v1",
        status=Status.ERROR,
        error_kind="unfinished",
    )
    cell = _cell([scored])
    assert cell.statuses == {"unfinished": 1}
    assert (cell.responses, cell.scored, cell.runs_ended) == (1, 0, 1)


def test_what_a_provider_did_not_count_is_no_zero() -> None:
    cell = _cell(
        [ScoredResponse(run=RUN, turn=1, last_turn=True, profile="p", status=Status.REFUSED)]
    )
    assert cell.input_tokens == cell.latency_ms == cell.cost_nanodollars == Tally(0, 0, 0)
    assert cell.statuses == {"refused": 1}
    assert cell.vectors == {}
