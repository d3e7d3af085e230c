"""How far the figures of a profile move with its vectors."""

from __future__ import annotations

import pytest

from socratic_bench.errors import BrokenPlugin
from socratic_bench.scoring.composition import UNKNOWN
from socratic_bench.scoring.profile import OVERALL, Weights
from socratic_bench.scoring.profiles import (
    known_composition,
    profile_named,
    yes_or_no_vectors,
)
from socratic_bench.scoring.socratic_v1.profile import SocraticV1

V1 = ("verbosity", "exploratory", "interrogative")
COMBINING = """
from socratic_bench.scoring.socratic_v1.profile import SocraticV1

class Mine(SocraticV1):
    name = "mine"
    overall_formula = "the least"
    {shares}

    def combine(self, values, dimension):
        return min(values)
"""


def test_the_overall_of_a_mean_moves_with_its_vectors_by_their_weights() -> None:
    found = known_composition("socratic-v1")

    assert found.moving == found.vectors == V1
    assert found.weights == Weights()
    assert found.shares_of("verbosity", V1) == {}


def test_a_graded_profile_has_the_weights_of_its_base_and_none_for_the_heuristic() -> None:
    found = known_composition("socratic-v1-llm")

    assert found.vectors == (*V1, "exploratory_heuristic")
    assert found.moving == V1
    assert found.weights == SocraticV1().weights


def test_the_overall_of_socratic_v2_falls_with_asking_and_so_does_its_form() -> None:
    found = known_composition("socratic-v2")

    for figure in (OVERALL, "form"):
        assert found.shares_of(figure, ()) == {"asking": 0.6}
    assert found.shares_of("ground", ()) == {}
    assert found.fewest == {"ground": 15, "guide": 15, "notice": 15, "locate": 15}


def test_a_profile_that_is_not_installed_may_fall_as_far_as_any_vector() -> None:
    found = known_composition("depth-v9")

    assert found is UNKNOWN
    assert found.shares_of(OVERALL, ("depth", "warmth")) == {"depth": 1, "warmth": 1}


def install_combining(install, shares: str) -> None:
    code = COMBINING.format(shares=shares)
    install(
        "mine-dist",
        "socratic_bench.profiles",
        "mine",
        "mine_profile:Mine",
        {"mine_profile.py": code},
    )


def test_and_so_may_one_that_combines_its_vectors_and_declares_nothing(install) -> None:
    install_combining(install, "")

    for name, vectors in (("mine", V1), ("mine-llm", V1)):
        found = known_composition(name)
        assert found.weights is None
        assert found.shares_of(OVERALL, ()) == dict.fromkeys(vectors, 1)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ('shares = {"overall": {"verbosty": 0.5}}', "names verbosty in `shares`"),
        ('shares = {"depth": {"verbosity": 0.5}}', "names depth in `shares`"),
        ('shares = {"overall": {"verbosity": 1.5}}', "needs shares of 'overall' from 0 to 1"),
    ],
)
def test_useless_shares_of_an_installed_profile_are_refused(install, shares, said) -> None:
    install_combining(install, shares)

    with pytest.raises(BrokenPlugin, match=said):
        profile_named("mine")


def test_shares_without_an_overall_of_its_own_are_refused(install) -> None:
    code = COMBINING.format(shares='shares = {"overall": {}}').replace("def combine", "def other")
    install(
        "mine-dist",
        "socratic_bench.profiles",
        "mine",
        "mine_profile:Mine",
        {"mine_profile.py": code},
    )

    with pytest.raises(BrokenPlugin, match="has `shares` but no `combine`"):
        profile_named("mine")


def test_vectors_that_say_yes_or_no_tell_what_an_answer_does() -> None:
    assert yes_or_no_vectors("socratic-v1") == {"interrogative": "ask"}
    assert set(yes_or_no_vectors("socratic-v2")) == {"open", "closing"}
    assert yes_or_no_vectors("depth-v9") == {}
