"""The code of the last version before a migration, from the history of this repository.

It runs with today's dependencies: only the project's own packages are the earlier ones.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MIGRATION = ":(glob)**/versions/0009_overdue_owners.py"
FOLDERS = (
    "shared",
    *(f"services/{kind}" for kind in ("runner", "judge", "curator", "api")),
    "deploy/cli",
)


def unpacked(folder: Path) -> dict[str, str]:
    """Put the code into a folder; return the environment in which Python runs it.

    Skips the test if the history does not reach back that far.
    """
    added = _git("log", "--diff-filter=A", "--format=%H", "--", MIGRATION).decode().split()
    if not added:
        pytest.skip(f"no commit of this repository's history adds {MIGRATION}")
    archive = _git("archive", f"{added[-1]}^", *FOLDERS)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    environment = {"PYTHONPATH": os.pathsep.join(str(folder / each) for each in FOLDERS)}
    ask = "import socratic_runner; print(socratic_runner.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", ask],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(folder))
    return environment


def _git(*words: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the history of this repository is not here: git {words[0]}: {error}")
