import pytest

from tests.e2e.command import Terminal


@pytest.fixture
def terminal(tmp_path) -> Terminal:
    return Terminal(tmp_path)
