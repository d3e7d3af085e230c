"""Contract suites for profiles and providers that live outside this project.

A suite is a module of tests that ask for a fixture. A test file imports all of them and hands in
its own object:

    from socratic_bench.testing.profile_contract import *

    @pytest.fixture
    def profile():
        return MyProfile()

The extra `testing` brings pytest, pytest-asyncio and Hypothesis; suites with asynchronous tests
need `asyncio_mode = "auto"`. No package imports this one at run time.
"""

import pytest

pytest.register_assert_rewrite(
    "socratic_bench.testing.client_contract",
    "socratic_bench.testing.profile_contract",
    "socratic_bench.testing.spec_contract",
)
