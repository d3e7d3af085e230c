"""The client of `echo` keeps the promises of a model client."""

from functools import partial

import pytest
from socratic_example_provider.client import EchoClient

from socratic_bench.testing.client_contract import *


@pytest.fixture
def under_test() -> ClientUnderTest:
    return ClientUnderTest(partial(EchoClient, words=3))
