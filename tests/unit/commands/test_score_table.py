"""The table of `score` is no wider than the terminal, and cuts no figure and no heading."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from socratic_cli.commands import score as score_table
from socratic_cli.commands.score import print_score_table
from socratic_cli.reading.transcripts import ScoredLine


def printed(monkeypatch: pytest.MonkeyPatch, lines: list[ScoredLine], vectors: list[str]) -> str:
    """What the table of these lines is in a terminal of 80 columns."""
    output = StringIO()
    console = Console(width=80, file=output)
    monkeypatch.setattr(score_table, "standard_output", lambda: console)
    assert print_score_table(lines, vectors) == []
    return output.getvalue()


def test_vectors_that_do_not_fit_are_left_out_from_the_last_one_on_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = [f"vector-{number}" for number in range(1, 13)]
    figures = {"status": "ok", "overall": 0.75, **dict.fromkeys(vectors, 0.25)}
    lines = [ScoredLine(number, "Why? " * 20, figures) for number in (1, 2)]
    text = printed(monkeypatch, lines, vectors)
    header, first, _, mean, *note = text.splitlines()
    assert max(map(len, text.splitlines())) <= 80
    shown = [each for each in vectors if each in header.split()]
    assert shown == vectors[: len(shown)]
    assert first.split()[: len(shown) + 2] == ["1", *["0.25"] * len(shown), "0.75"]
    assert mean.split()[0] == "mean"
    assert "of 2 scored" in mean
    told = " ".join(note)
    assert all(each in told for each in vectors[len(shown) :])


def test_a_word_below_a_figure_needs_no_more_room_than_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = {"facts": {"asks": {"word": "does not ask last"}}}
    figures = {"status": "ok", "overall": 0.5, "asks": 1.0, "evidence": facts}
    header, first, words = printed(
        monkeypatch, [ScoredLine(1, "Why?", figures)], ["asks"]
    ).splitlines()
    assert words.rstrip().endswith("does not ask last")
    assert first.index("1.00") + 4 == header.index("asks") + 4 == len(words.rstrip())
