"""One engine with the base images for all tests of containers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers.base_images import provide_base_images
from tests.containers.engine import Engine, engine
from tests.servers.discovery import NotHere


@pytest.fixture(scope="session")
def container_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine; without one, or without base images, tests are skipped, also with CI=true.

    Not every CI machine can start a container.
    """
    try:
        with engine(tmp_path_factory.mktemp("docker")) as running:
            provide_base_images(running)
            yield running
    except NotHere as reason:
        pytest.skip(str(reason))
