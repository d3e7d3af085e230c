"""What the tests of AWS share: the packages, built once, and a stage, deployed once."""

from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from tests.aws.environment import build_packages, synthesize

HERE = Path(__file__).parent
TEMPLATES = ("test_templates.py", "test_container_templates.py", "test_cost.py")
"""What reads the same templates."""


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in this hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a template or the deployed stage in one process."""
    for item in items:
        folder = item.path.parent
        if not folder.is_relative_to(HERE):
            continue
        group = item.path if folder.name != "deployment" else folder
        name = "templates" if group.name in TEMPLATES else str(group.relative_to(HERE))
        item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of the packages for this machine's processor, one for all processes."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder if worker_id == "master" else folder.parent
    made = shared / "packages" / "x86_64"
    with FileLock(shared / "packages.lock"):
        if not (made / "packages.json").exists():
            build_packages(made)
    return made


@pytest.fixture(scope="session")
def plain_templates(
    packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """The templates of functions as the runbook has them: no canary, no keys, no cost alarm."""
    return synthesize(tmp_path_factory.mktemp("plain"), packages=str(packages))
