"""A profile that is broken names itself in an error; it never makes a score."""

import pytest

from socratic_bench import score
from socratic_bench.errors import BrokenProfile
from tests.unit.scoring.broken_profiles import EVIDENCE, MEASURES, install_broken


@pytest.mark.parametrize(("body", "said"), MEASURES.values(), ids=MEASURES)
def test_what_is_no_score_is_an_error_that_names_the_profile(install, body, said):
    install_broken(install, "measure", body)
    with pytest.raises(BrokenProfile) as broken:
        score("Why?", profile="broken-v1")
    assert str(broken.value).startswith(f"profile broken-v1 {said}")
    assert score("a good one?", profile="broken-v1").scored


@pytest.mark.parametrize(("body", "said"), EVIDENCE.values(), ids=EVIDENCE)
def test_what_is_no_evidence_is_an_error_that_names_the_profile(install, body, said):
    install_broken(install, "evidence", body)
    scored = score("Why?", profile="broken-v1")
    with pytest.raises(BrokenProfile) as broken:
        scored.as_dict()
    assert str(broken.value).startswith(f"profile broken-v1 {said}")
    assert score("a good one?", profile="broken-v1").as_dict()["evidence"]["facts"]


def test_a_profile_that_cannot_say_what_it_scores_is_an_error_that_names_it(install):
    source = "def may_score(self, status, tokens): raise RuntimeError('which?')"
    install_broken(install, "unused", f"pass\n    {source}")
    with pytest.raises(BrokenProfile, match="broken-v1 cannot measure a response: RuntimeError"):
        score("Why?", profile="broken-v1")
