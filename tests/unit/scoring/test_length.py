"""The length of a text in tokens: estimated, and by the ruler that is the same for all models."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench import score
from socratic_bench.scoring.length import estimated_tokens, words_and_marks
from socratic_bench.scoring.profile import SAME_RULER

UNIT = re.compile(r"'(s|t|re|ve|ll|d|m)\b|[^\W\d_]+|\d{1,3}| (?=\d)|[^\w\s]|_")

LATIN = st.text(st.characters(codec="ascii") | st.sampled_from("'st 0\u00e9\u2014\u00b2\u00a0"))

OF_O200K = {
    "What might you consider first, and why do you think so?": (13, 13),
    "你首先会考虑什么？为什么你这样想？": (13, 14),
    "Mitä voisit miettiä ensin tästä kysymyksestä, ja miksi ajattelet juuri niin?": (20, 26),
    "Что бы ты рассмотрел сначала, и почему ты так думаешь?": (14, 18),
}
"""Texts, and about what o200k_base makes of them: the fewest and the most tokens."""


@given(LATIN)
def test_words_and_marks_are_the_matches_of_the_published_expression(text: str):
    if len(text.encode()) < 1.03 * len(text):
        assert words_and_marks(text) == sum(1 for _ in UNIT.finditer(text))


@pytest.mark.parametrize("text", OF_O200K)
def test_both_lengths_are_near_those_of_a_tokenizer_in_any_script(text: str):
    fewest, most = OF_O200K[text]
    assert 0.6 * fewest <= words_and_marks(text) <= 1.3 * most
    assert 0.75 * fewest <= estimated_tokens(text) <= 1.45 * most


@given(st.text(max_size=200))
def test_every_text_has_a_length(text: str):
    assert 0 <= words_and_marks(text) <= 2 * len(text)
    assert 0 <= estimated_tokens(text) <= 1.3 * len(text)


def test_english_with_dashes_and_quotes_counts_by_its_words():
    text = "“What might you consider?” — that was all he asked of us, “twice”." * 9
    assert estimated_tokens(text) == len(text.split()) * 1.3


def test_a_long_text_without_spaces_is_not_brief():
    assert score("\u8003" * 2000).verbosity == 0.0


def test_the_same_ruler_counts_alike_whatever_a_provider_counted():
    text = "What might you consider first, and why do you think so?"
    measured = {score(text, output_tokens=n, profile=SAME_RULER).verbosity for n in (None, 9, 400)}
    assert measured == {1 - 13 / 500}
    fact = score(text, profile=SAME_RULER).evidence.facts["verbosity"]
    assert fact.values == {"token_count": 13, "token_source": "words and marks"}


def test_a_cut_off_answer_is_scored_from_500_words_and_marks_on():
    long = "word " * 500
    assert score(long, output_tokens=900, status="truncated", profile=SAME_RULER).scored
    assert not score(long[5:], output_tokens=900, status="truncated", profile=SAME_RULER).scored
