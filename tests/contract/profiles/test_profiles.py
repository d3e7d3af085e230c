"""Each built-in profile keeps the promises of a profile."""

import pytest

from socratic_bench.scoring.profile import CANONICAL, Profile
from socratic_bench.scoring.profiles import profile_named
from socratic_bench.testing.profile_contract import *


@pytest.fixture(
    params=[
        CANONICAL,
        "socratic-v2",
        "socratic-v3",
        "socratic-v1-llm",
        "fidelity-1",
        "fidelity-seed",
    ]
)
def profile(request: pytest.FixtureRequest) -> Profile:
    return profile_named(request.param)
