"""The profiles of this distribution keep the promises of a profile."""

import pytest
from socratic_example_profile.persistence import Persistence
from socratic_example_profile.uptake import Uptake

from socratic_bench.scoring.profile import Profile
from socratic_bench.testing.profile_contract import *


@pytest.fixture(params=[Uptake, Persistence])
def profile(request: pytest.FixtureRequest) -> Profile:
    return request.param()
