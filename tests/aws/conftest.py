"""What the tests of AWS share: the packages, built once."""

from pathlib import Path

import pytest

from tests.aws.environment import build_packages


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the packages for this machine's processor."""
    folder = tmp_path_factory.mktemp("packages") / "x86_64"
    build_packages(folder)
    return folder
