"""Evidence of extreme texts, within the time that any text of the length takes."""

from __future__ import annotations

import pytest

from socratic_bench.scoring.socratic_v1.vectors import final_sentence


@pytest.mark.parametrize("text", ["." * 500_000 + "a", ".)" * 250_000, "." + ")" * 500_000])
@pytest.mark.timeout(30)
def test_a_long_run_of_stops_is_one_sentence_and_found_in_linear_time(text: str):
    assert final_sentence(text) == (0, len(text))
