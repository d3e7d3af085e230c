"""Cheap replies score below an honest Socratic turn, by stated margins."""

import pytest

from socratic_bench.research.gaming import HONEST, REPLIES, UNSOLVED, gaming_table

MOST = {
    "question mark alone": 0.0,
    "repeated questions": 0.01,
    "lecture and a question": 0.13,
    "constant reply": 0.40,
    "random words": 0.40,
    "answer as a closed question": 0.56,
}
HONEST_AT_LEAST = 0.80


@pytest.fixture(scope="module")
def table():
    return gaming_table("socratic-v2")


@pytest.mark.parametrize("reply", MOST)
def test_a_cheap_reply_scores_below_an_honest_turn_by_its_margin(table, reply):
    assert table[reply] <= MOST[reply] + 0.005
    assert table[HONEST] >= HONEST_AT_LEAST
    assert table[HONEST] - table[reply] >= HONEST_AT_LEAST - MOST[reply]


def test_the_table_shows_the_replies_that_the_profile_cannot_tell_from_honest_ones(table):
    assert set(table) == set(REPLIES) == {HONEST, *MOST, *UNSOLVED}
    assert all(table[reply] > 0.5 for reply in UNSOLVED)


def test_socratic_v1_takes_a_question_mark_alone_for_a_good_turn():
    # It reads the surface: this is why the second profile exists.
    assert gaming_table("socratic-v1")["question mark alone"] > 0.8
