"""The spec of `echo` keeps the promises of a spec."""

import pytest
from socratic_example_provider.spec import ECHO

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.providers.spec import ProviderSpec
from socratic_bench.testing.spec_contract import *


@pytest.fixture
def spec() -> ProviderSpec:
    return ECHO


@pytest.fixture
def model() -> TutorModel:
    return TutorModel(id="echo/last-words", options={"words": 3})
