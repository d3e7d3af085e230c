"""The built pages of the dashboard, for tests that look at them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from socratic_api.answers.ready_bytes import make_ready
from socratic_api.routes import dashboard
from tests.servers.discovery import missing

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "services/api/dashboard/build.py"
BUILD_SECONDS = 280


def require_pages() -> None:
    """Build the pages, if a source changed; skip the test with the reason where that cannot be."""
    done = subprocess.run(
        [sys.executable, str(BUILD), "--required"],
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        missing(done.stderr)


@contextmanager
def packed_once() -> Iterator[None]:
    """Compress each file of the pages once, for all applications that the tests build."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dashboard, "make_ready", cache(make_ready))
        yield
