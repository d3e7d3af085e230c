"""A transcript shows a model's text as text, and marks the evidence at its place."""

import io
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from socratic_bench.domain.response import Response
from socratic_bench.domain.run import Run
from socratic_bench.results.transcripts import Transcript, Turn
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.score import score
from socratic_cli.commands.transcripts import CLOSE, OPEN, readable, transcript_text

RUN = Run(
    run_id="run-1",
    experiment_id="exp-1",
    model_id="hosted/m",
    scenario_id="s",
    dimension="ethical",
    repeat=1,
)


def shown(text: str, student: str = "Why?", *, most: int | None = None) -> str:
    response = Response(
        run=RUN,
        turn=1,
        last_turn=True,
        profile="socratic-v1",
        student_message=student,
        text=text,
        status=Status.OK,
        recorded_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    transcript = Transcript(RUN, (Turn(response, score(text)),), None)
    out = io.StringIO()
    console = Console(file=out, width=10_000, markup=False, highlight=False, emoji=False)
    console.print(transcript_text(transcript, has_style=False, most=most))
    return out.getvalue()


def test_the_words_that_a_vector_reads_are_marked_in_place() -> None:
    assert f"{OPEN}Perhaps{CLOSE} so" in shown("Perhaps so.")


def test_markup_of_the_terminal_is_text() -> None:
    assert "[bold]x[/bold] :smile:" in shown("[bold]x[/bold] :smile:")


def test_a_long_text_is_cut_where_asked() -> None:
    assert "\u2026 6 more characters" in shown("a" * 10, most=4)


@given(text=st.text(), student=st.text())
def test_nothing_that_a_model_says_moves_the_terminal(text: str, student: str) -> None:
    assert all(each.isprintable() or each == "\n" for each in shown(text, student))


@given(text=st.text())
def test_a_readable_text_keeps_every_position(text: str) -> None:
    assert len(readable(text)) == len(text)
