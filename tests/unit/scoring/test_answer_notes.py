"""The notes of an answer, as counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.scoring import answer_notes as notes
from socratic_bench.scoring.answer_notes import counts_of, is_not_english
from socratic_bench.scoring.profile import MOST_COUNT

OF_EACH = {notes.ANSWERS, notes.SAME, notes.SAME_SQUARES, notes.UNITS, notes.TOKENS}


def noted(text: str, *, finished: bool = True, wire: tuple[str, ...] = ()) -> set[str]:
    counts = counts_of(text, finished=finished, visible_tokens=9, version=None, wire=wire)
    return set(counts) - OF_EACH


@pytest.mark.parametrize(
    "marks", ["**", '"', ")", " 🙂", "\u200b", "!", " [1]", " [1][2]", " (see p. 3)", "\n\n***"]
)
def test_marks_after_the_last_question_mark_are_noted(marks: str):
    assert noted(f"What might you consider{'?'}{marks}") == {notes.MARKS}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What do you think?", set()),
        ("What do you think? Tell me.", set()),
        ("You should always do this, never that. What if you ", {notes.MID_SENTENCE}),
        ("First we add, then,", {notes.MID_SENTENCE}),
        ("The sum is 12", set()),
        ("Think.\n\nStudent: Oh, so what might I do next?", {notes.STUDENT_TURN}),
        ("Think.\n**User:** Oh?", {notes.STUDENT_TURN}),
        ("Student: is that you?", set()),
        ("Was könntest du zuerst tun, um die Aufgabe zu lösen, und warum?", {notes.NOT_ENGLISH}),
        ("最初に何を考えますか？なぜそう思いますか？", {notes.NOT_ENGLISH}),
    ],
)
def test_what_a_text_gives_reason_for_is_noted(text: str, expected: set[str]):
    assert noted(text) == expected


def test_a_cut_off_answer_ends_where_it_was_cut_off():
    assert noted("What if you ", finished=False) == set()


def test_notes_of_the_wire_are_counted_and_unknown_ones_are_not():
    assert noted("Why?", wire=(notes.THOUGHTS, "note.of_tomorrow")) == {notes.THOUGHTS}


def test_an_answer_without_a_count_is_noted_and_has_no_part_in_the_ruler():
    counts = counts_of("Why so?", finished=True, visible_tokens=None, version="m-1", wire=())
    assert counts[notes.ESTIMATED] == counts[notes.VERSION + "m-1"] == 1
    assert not {notes.UNITS, notes.TOKENS} & set(counts)


def test_a_short_text_or_one_of_formulas_tells_no_language():
    assert not is_not_english("Pourquoi ?")
    assert not is_not_english("Is it 3 + 4 = 7, and what do you get for 7 - 4, or for 7 - 3?")


@given(st.lists(st.text(max_size=20), min_size=1, max_size=6))
def test_the_sums_of_texts_tell_whether_they_are_one(texts: list[str]):
    counts = [
        counts_of(text, finished=True, visible_tokens=1, version=None, wire=()) for text in texts
    ]
    assert all(0 <= count <= MOST_COUNT for each in counts for count in each.values())
    total = sum(each[notes.SAME] for each in counts)
    squares = sum(each[notes.SAME_SQUARES] for each in counts)
    assert (len(texts) * squares == total**2) == (len(set(texts)) == 1)
