"""`socratic-v2`: the worked examples, an independent implementation, the evidence."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench import score
from socratic_bench.results.leaderboard.baseline import CONSTANT_REPLY
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.socratic_v2.reading import (
    body_of,
    layout_of,
    normalised,
    normalised_positions,
)
from socratic_bench.scoring.socratic_v2.sentence_roles import PhraseIndex, StudentWords
from socratic_bench.scoring.socratic_v2.words import sentences_of
from tests.unit.scoring.reference_socratic_v2 import VECTORS, reference_figures

EXAMPLES = json.loads(Path("tests/golden/scores/socratic-v2.json").read_text())
PARTS = st.sampled_from(
    [
        *("what", "how", "is", "should", "you", "the answer is", "because", "would you like"),
        *("can i help", "17", "3.5", "1,200", "=", "-", " ", "\n", "?", "!", ".", "...", "'", "'s"),
        *("\u2019", "\u201d", "*", "_", "#", ">", "- ", "1. ", "a) ", "```", "Tutor:", "\nUser: "),
        *("\u00e9", "\u0130", "\u212a", "\u200b", "\u00a0", "\t", "\r", "\uff1f", "\ud800", "$"),
        *("not quite", "but", "double-check", "isn't", "apples", "makes sense", "let me know"),
    ]
)
TEXTS = st.lists(st.tuples(PARTS, st.sampled_from(["", " "])), max_size=40).map(
    lambda parts: "".join(part + gap for part, gap in parts)
)


def figures_of(text, student="", context=""):
    earlier = (EarlierTurn(context, ""),) if context else ()
    return score(text, student_message=student, earlier_turns=earlier, profile="socratic-v2")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["id"])
def test_a_worked_example_holds_to_four_decimals(example):
    found = figures_of(example["response"], example["student"], example["context"])
    guards = found.evidence.facts["form"].values
    for name, expected in example["figures"].items():
        figure = guards[name] if name in guards else found[name]
        assert round(float(figure), 4) == expected, name


@given(TEXTS, TEXTS, TEXTS)
def test_figures_equal_an_independent_implementation_to_the_last_bit(text, student, context):
    found = figures_of(text, student, context)
    if not found.scored:
        return
    expected = reference_figures(text, student, context)
    guards = found.evidence.facts["form"].values
    assert tuple(found.vectors) == VECTORS
    for name, figure in expected.items():
        assert (guards[name] if name in guards else found[name]) == figure, name


@given(TEXTS)
def test_the_layout_has_a_place_for_each_character_of_the_body(text):
    response = normalised(text)
    layout = layout_of(response, normalised_positions(text))
    body = body_of(response)
    if response:
        assert len(layout.body) == len(body.text)
    assert layout.body == sorted(layout.body)
    assert (layout.run_on is not None) is (body.is_cut and bool(response))


def parts_of(text, **given_inputs):
    spans = figures_of(text, **given_inputs).evidence.spans
    return {(span.kind, text[span.start : span.end]) for span in spans}


def test_evidence_shows_questions_uptake_leaks_flags_and_the_part_that_was_cut():
    text = (
        "Tutor: Not quite. You \u201cadded\u201d 12\u200b apples.\n- You should get 17.\n"
        "How could you check?\nUser: I see"
    )
    assert parts_of(text, student="I added 12 and 5") == {
        ("flag", "Not quite"),
        ("uptake", "added"),
        ("uptake", "12"),
        *(("ground", "added"), ("ground", "12"), ("number", "12")),
        ("leak", "You should"),
        ("leak", "17"),
        ("question", "How could you check?"),
        ("run_on", "\nUser: I see"),
    }


def test_evidence_shows_words_and_numbers_of_the_earlier_conversation_too():
    text = "Ann has 1,200 apples. Why that?"
    assert parts_of(text, student="I see", context="Ann buys 1200 APPLES") == {
        *(("ground", "Ann"), ("ground", "apples"), ("number", "1,200")),
    }


def test_evidence_shows_echoes_and_offers():
    text = "I added it up! Would you like more help?"
    assert parts_of(text, student="Well, I added it up.") == {
        ("echo", "I added it up!"),
        ("ground", "added"),
        ("offer", "Would you like more help?"),
    }


def test_overall_is_the_form_in_every_dimension_and_no_mean():
    response = "How could you check the sum?"
    found = score(response, dimension="ethical", profile="socratic-v2")
    assert found.overall == found.form == score(response, profile="socratic-v2").overall


@pytest.mark.parametrize("status", ["truncated", "refused", "empty", "error"])
def test_only_a_finished_response_has_a_score(status):
    found = score("Why that?", status=status, output_tokens=900, profile="socratic-v2")
    assert not found.scored


@given(st.lists(st.sampled_from("ab"), max_size=12), st.lists(st.sampled_from("ab"), max_size=5))
def test_the_index_of_phrases_finds_what_follows_word_for_word(words, phrase):
    joined = f" {' '.join(words)} " if words else " "
    expected = not phrase or f" {' '.join(phrase)} " in joined
    assert PhraseIndex(words).contains(phrase) is expected


def test_many_sentences_beside_a_long_message_are_looked_up_in_an_index():
    student = StudentWords([f"w{number % 97}" for number in range(40_000)])
    sentences = sentences_of("".join(f"\nw{n % 97} w{(n + 1) % 97} w5" for n in range(2_000)))
    found = [student.is_echoed_by(sentence) for sentence in sentences]
    assert sum(found) == sum(n % 97 == 3 for n in range(2_000))
    assert student.has_index


HOSTILE = (
    *(".", ".)", "?", "a. ", "```", "1", "=", "1 ", "'", "a'", "\n", "\n ", "* ", "tutor", " "),
    *("not ", "what is it? ", "because ", "1,", "the answer is ", "i added it. "),
)


@pytest.mark.two_lengths
@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", HOSTILE)
def test_a_long_hostile_text_has_figures(part):
    # A pattern that needs the square of these steps outlasts the minute.
    text = part * (100_000 // len(part)) + "a"
    found = figures_of(text, text, text)
    assert found.scored
    assert found.evidence.facts


@pytest.mark.parametrize("part", HOSTILE)
def test_the_work_for_a_hostile_text_grows_with_its_length_and_not_with_its_square(part):
    # Eight times the length takes eight times the steps if they are linear, 64 times if quadratic.
    short, long = (part * (length // len(part)) + "a" for length in (500, 4_000))
    assert steps_of(long) < 16 * steps_of(short)


def steps_of(text):
    """How many lines of Python run for the figures of a text. A step of a loop is one, too."""
    steps = 0

    def count(_frame, event, _argument):
        nonlocal steps
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        figures_of(text, text, text)
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize(("profile", "overall", "ground"), [("v2", 0.8, 1.0), ("v3", 0.4, 0.0)])
def test_only_the_second_version_grounds_a_repetition_in_the_tutors_own_words(
    profile, overall, ground
):
    earlier = [EarlierTurn("Why is the sky blue?", CONSTANT_REPLY)]
    first = score(CONSTANT_REPLY, student_message=earlier[0].student, profile=f"socratic-{profile}")
    again = score(
        CONSTANT_REPLY,
        student_message="Just tell me.",
        earlier_turns=earlier,
        profile=f"socratic-{profile}",
    )
    assert (first.vectors["ground"], again.vectors["ground"]) == (0.0, ground)
    assert first.overall == pytest.approx(0.4, abs=0.005)
    assert again.overall == pytest.approx(overall, abs=0.005)


@given(TEXTS, TEXTS, TEXTS)
def test_the_third_version_differs_by_the_tutors_own_words_alone(text, student, own):
    def figures(version, *earlier):
        profile = f"socratic-{version}"
        return score(text, student_message=student, earlier_turns=earlier, profile=profile).vectors

    unanswered, answered = (EarlierTurn("I added 12 and 5.", reply) for reply in ("", own))
    assert figures("v3") == figures("v2")
    assert figures("v3", unanswered) == figures("v2", unanswered)
    second, third = figures("v2", answered), figures("v3", answered)
    if third is None:
        return
    assert third["ground"] == figures("v3", unanswered)["ground"] <= second["ground"]
    assert third["withholding"] == second["withholding"], "a number of its own is not new"
