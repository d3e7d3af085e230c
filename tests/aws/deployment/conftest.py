"""The stage that tests of a deployment share, deployed once."""

import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.aws.deployment.stage import Operator
from tests.aws.environment import DEPLOY
from tests.servers import aws_emulator
from tests.servers.discovery import missing


@pytest.fixture(scope="session")
def stage(packages: Path) -> Iterator[Operator]:
    """A stage on the emulator with the release of the packages. Tests may deploy others to it."""
    if not (DEPLOY / "node_modules" / "aws-cdk").exists():
        missing("CDK's program is not there: `make test-aws` fetches it from npm")
    operator = Operator(packages)
    with mock.patch.dict(os.environ, aws_emulator.credentials()):
        told = operator.deploy(packages, "--bootstrap")
        assert f"Release:    {operator.release}" in told
        yield operator
