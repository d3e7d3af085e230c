"""A score: the formulas, the markers, the statuses."""

import copy
import json
import os
import pickle
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import socratic_bench
from socratic_bench import Status, score
from socratic_bench.errors import UnknownProfile
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.length import estimated_tokens
from socratic_bench.scoring.profile import Weights
from socratic_bench.scoring.socratic_v1.profile import SocraticV1
from tests.unit.scoring.reference_scorer import reference_scores

MARKER_TEXT = st.lists(
    st.sampled_from(
        [
            *("consider", "might", "depends", "perhaps", "what", "if", "could", "should", "must"),
            *("the", "answer", "is", "always", "never", "Should", "MIGHT", "mustard", "shoulder"),
            *(" ", " ", " ", "\n", "\t", "\u00a0", "_", "-", "'", ".", "?", "1", "é", "İ", "²"),
        ]
    ),
    max_size=40,
).map("".join)


@pytest.mark.parametrize(
    ("text", "tokens", "vector", "expected"),
    [
        ("What do you think?", None, "verbosity", 0.99),
        ("anything", 250, "verbosity", 0.50),
        ("anything", 500, "verbosity", 0.00),
        ("anything", 12_000, "verbosity", 0.00),
        ("What might you consider?", None, "exploratory", 1.00),
        ("You should always do this", None, "exploratory", 0.00),
        ("Nothing marked here.", None, "exploratory", 0.50),
        ("What do you think?", None, "interrogative", 1.00),
        ("What do you think? \n\n", None, "interrogative", 1.00),
        ("Think. Really?!", None, "interrogative", 0.00),
    ],
)
def test_the_documented_examples_hold_to_the_hundredth(text, tokens, vector, expected):
    found = score(text, output_tokens=tokens)[vector]
    assert found is not None
    assert round(found, 2) == expected


def markers_in(text):
    return [span for span in score(text).evidence.spans if span.kind != "final_sentence"]


@pytest.mark.parametrize(
    "text",
    [
        "mustard on the shoulder",
        "a considerable mastery",
        "nevertheless, whatever",
        "could_have and must2",
        "éalways alwaysé",
        "the answers is; answer is",
        "whatif what-if",
    ],
)
def test_a_marker_inside_another_word_does_not_count(text):
    assert markers_in(text) == []


@pytest.mark.parametrize(
    ("text", "markers"),
    [
        ("(might)", ["might"]),
        ("MIGHT, Might; might", ["might", "might", "might"]),
        ("What\n  if", ["what if"]),
        ("what\u00a0if the\tanswer \n is", ["what if", "the answer is"]),
        ("what if what if", ["what if", "what if"]),
        ("İmust must", ["must"]),
        ("it's must's", ["must"]),
    ],
)
def test_a_marker_counts_whole_in_any_case_over_any_white_space(text, markers):
    assert [span.label for span in markers_in(text)] == markers


def test_evidence_points_at_the_markers_in_the_original_text():
    text = "İf SO, what \t If we\u2019d say the answer is: it depends?"
    found = [text[span.start : span.end] for span in markers_in(text)]
    assert found == ["what \t If", "the answer is", "depends"]


def test_a_score_without_markers_says_so():
    figures = score("Tell me more.")
    assert figures.exploratory == 0.5
    assert "no exploratory or directive marker" in figures.evidence.notes[0]


def test_evidence_names_who_counted_the_tokens():
    counted = score("one two", output_tokens=7).evidence.facts["verbosity"]
    assert counted.values == {"token_count": 7, "token_source": "provider"}
    estimated = score("one two").evidence.facts["verbosity"]
    assert estimated.values == {"token_count": 2.6, "token_source": "words"}


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("One. Two? Three!", "Three!"),
        ("One.\n\n- What now?\n", "- What now?"),
        ("Only one", "Only one"),
        ('He said "go." Then what?', "Then what?"),
        ("It costs 3.50 now", "It costs 3.50 now"),
    ],
)
def test_the_final_sentence_is_shown_where_it_stands(text, last):
    [sentence] = [span for span in score(text).evidence.spans if span.kind == "final_sentence"]
    assert sentence.label == last
    assert text[sentence.start : sentence.end] == last


@pytest.mark.parametrize(
    ("text", "tokens", "vector", "word"),
    [
        ("What do you think?", None, "verbosity", "brief"),
        ("anything", 300, "verbosity", "long"),
        ("What might you consider?", None, "exploratory", "open"),
        ("You should always do this", None, "exploratory", "telling"),
        ("You could, but you must.", None, "exploratory", "balanced"),
        ("Nothing marked here.", None, "exploratory", "no marker"),
        ("What do you think?", None, "interrogative", "asks last"),
        ("Tell me.", None, "interrogative", "does not ask last"),
    ],
)
def test_the_evidence_says_every_score_in_a_word(text, tokens, vector, word):
    assert score(text, output_tokens=tokens).evidence.facts[vector].word == word


def test_the_legend_explains_every_kind_of_span():
    kinds = {span.kind for span in score("You could, but you must.").evidence.spans}
    assert kinds == {each.kind for each in SocraticV1().legend()}


@pytest.mark.parametrize("status", ["refused", "empty", "error"])
def test_what_is_not_an_answer_has_no_score(status):
    figures = score("You should ask?", status=status)
    assert dict(figures) == dict.fromkeys(figures)
    assert figures.vectors is None
    assert not figures.scored


def test_an_answer_without_text_is_empty_and_unscored():
    figures = score(" \n\t ")
    assert figures.status is Status.EMPTY
    assert figures.overall is None


@pytest.mark.parametrize(("tokens", "scored"), [(None, False), (499, False), (500, True)])
def test_a_cut_off_answer_is_scored_only_where_the_cut_cannot_matter(tokens, scored):
    figures = score("It might be that", status="truncated", output_tokens=tokens)
    assert figures.scored is scored
    assert figures.overall == (pytest.approx(1 / 3) if scored else None)


def test_overall_is_the_mean_of_the_vectors():
    figures = score("What do you think?")
    assert figures.overall == pytest.approx((0.9896 + 0.5 + 1) / 3, abs=1e-12)


def test_a_profile_may_weigh_vectors_by_dimension():
    weights = Weights({"ethical": {"interrogative": 3, "exploratory": 1}})
    profile = SocraticV1(weights)
    ethical = score("What do you think?", dimension="ethical", profile=profile)
    other = score("What do you think?", dimension="student", profile=profile)
    assert ethical.overall == pytest.approx((3 * 1.0 + 1 * 0.5) / 4)
    assert other.overall == score("What do you think?").overall


def test_wrong_arguments_are_refused_with_a_sentence():
    with pytest.raises(ValueError, match="output_tokens must be from 0 to 1,000,000,000,000"):
        score("x", output_tokens=-1)
    with pytest.raises(ValueError, match="bogus"):
        score("x", status="bogus")
    with pytest.raises(UnknownProfile, match="'socratic-v9'; known: socratic-v1"):
        score("x", profile="socratic-v9")


def test_a_score_is_json_with_the_documented_keys():
    line = json.loads(json.dumps(score("What might you consider?").as_dict()))
    assert set(line) == {
        *("verbosity", "exploratory", "interrogative", "overall", "status", "evidence")
    }
    assert set(line["evidence"]) == {"spans", "facts", "notes"}
    assert set(line["evidence"]["facts"]) == {"verbosity", "exploratory", "interrogative"}


@given(MARKER_TEXT, st.none() | st.integers(1, 2_000))
def test_scores_equal_an_independent_implementation(text, tokens):
    if tokens is None and not text.isascii():
        tokens = estimated_tokens(text)  # not by the words alone: test_length.py
    figures = score(text, output_tokens=tokens)
    if not text.strip():
        assert figures.overall is None
        return
    for name, expected in reference_scores(text, tokens).items():
        assert figures[name] == pytest.approx(expected, abs=1e-9)


@given(st.text(max_size=300))
def test_every_text_has_figures_between_0_and_1_and_evidence_inside_it(text):
    figures = score(text)
    assert all(value is None or 0.0 <= value <= 1.0 for value in figures.values())
    for span in figures.evidence.spans:
        shown = text[span.start : span.end]
        marks_a_word = span.kind != "final_sentence"
        assert shown.lower().split() == span.label.split() if marks_a_word else shown == span.label


def test_scores_of_real_responses_equal_the_independent_implementation():
    folder = os.environ.get("SOCRATIC_TEST_DATA")
    if not folder:
        pytest.skip("SOCRATIC_TEST_DATA names no folder of real responses (*.jsonl)")
    compared = 0
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            text = record.get("response") or record.get("output")
            if text and text.strip():
                figures = score(text, raw=False)
                for name, expected in reference_scores(text, estimated_tokens(text)).items():
                    assert figures[name] == pytest.approx(expected, abs=1e-9)
                compared += 1
    assert compared > 1_000


def pickled(figures):
    return pickle.loads(pickle.dumps(figures))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("status", ["ok", "refused"])
def test_a_score_can_be_copied_and_sent_to_another_process(again, status):
    figures = score("It depends. What if you could ask?", output_tokens=250, status=status)
    other = again(figures)
    assert other == figures
    assert other.as_dict() == figures.as_dict()
    assert (other.status, other.profile) == (figures.status, figures.profile)


def test_the_library_says_its_version():
    assert socratic_bench.__version__ == version("socratic-ai-bench-core")


def test_a_turn_before_may_be_a_mapping():
    turn = {"student": "Why is the sky blue?", "tutor": "What have you seen of it?"}
    earlier = [EarlierTurn(turn["student"], turn["tutor"])]
    for profile in ("socratic-v2", "fidelity-1"):
        given_as = [
            score("And at noon?", earlier_turns=turns, profile=profile).as_dict()
            for turns in ([turn], earlier)
        ]
        assert given_as[0] == given_as[1]


@pytest.mark.parametrize("turn", ["Why?", {"student": "Why?"}, {"student": "Why?", "tutor": 3}])
def test_what_is_no_turn_is_refused_by_its_number(turn: object):
    turns = [{"student": "a", "tutor": "b"}, turn]
    with pytest.raises(TypeError, match="`earlier_turns` 2 "):
        score("And at noon?", earlier_turns=turns)  # type: ignore[arg-type]
