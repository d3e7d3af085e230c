"""A graded profile: the grade in place of the exploratory vector, and the heuristic beside it."""

import pytest

from socratic_bench import score
from socratic_bench.errors import UnknownProfile
from socratic_bench.scoring.profiles import graded_names, needs_grade, profile_named, profile_names

TEXT = "You might consider both, but you should decide."
GRADED = "socratic-v1-llm"


def test_the_grade_takes_the_vectors_place_in_the_overall_and_the_heuristic_stands_beside_it():
    plain, graded = score(TEXT), score(TEXT, grade=0.9, profile=GRADED)
    assert graded.vectors == {
        "verbosity": plain["verbosity"],
        "exploratory": 0.9,
        "interrogative": plain["interrogative"],
        "exploratory_heuristic": plain["exploratory"],
    }
    assert graded.overall == (plain["verbosity"] + 0.9 + plain["interrogative"]) / 3


def test_without_a_grade_there_is_no_overall_and_the_heuristic_stays():
    ungraded = score(TEXT, profile=GRADED)
    assert (ungraded.overall, ungraded["exploratory"], ungraded.scored) == (None, None, False)
    assert ungraded["exploratory_heuristic"] == score(TEXT)["exploratory"]
    assert score(TEXT, grade=0.0, profile=GRADED).overall is not None, "0 is a grade"


def test_the_evidence_tells_the_grade_and_keeps_the_arithmetic_of_the_heuristic():
    facts = score(TEXT, grade=0.9, profile=GRADED).evidence.facts
    assert facts["exploratory"].sentence == "graded by a model: 0.90"
    plain = score(TEXT).evidence.facts["exploratory"]
    assert facts["exploratory_heuristic"] == plain
    facts = score(TEXT, profile=GRADED).evidence.facts
    assert facts["exploratory"].sentence.startswith("no grade")


def test_other_profiles_do_not_see_the_grade():
    assert dict(score(TEXT, grade=0.9)) == dict(score(TEXT))


def test_a_grade_is_from_zero_to_one():
    with pytest.raises(ValueError, match="grade must be from 0 to 1"):
        score(TEXT, grade=7, profile=GRADED)


def test_a_graded_profile_is_one_object_that_needs_a_grade_and_stands_in_no_list():
    assert profile_named(GRADED) is profile_named(GRADED)
    assert (needs_grade(GRADED), needs_grade("socratic-v1")) == (True, False)
    assert GRADED not in profile_names()
    assert GRADED in graded_names()
    assert "socratic-v2-llm" not in graded_names()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("socratic-v2-llm", "has no vector exploratory"),
        ("socratic-v9-llm", "unknown scorer profile 'socratic-v9-llm'"),
        ("socratic-v1-llm-llm", "unknown scorer profile"),
        ("-llm", "unknown scorer profile"),
    ],
)
def test_only_a_known_profile_with_that_vector_can_be_graded(name, why):
    with pytest.raises(UnknownProfile, match=why):
        profile_named(name)
