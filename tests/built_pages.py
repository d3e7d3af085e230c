"""The built pages of the dashboard, for tests that look at them."""

import subprocess
import sys
from pathlib import Path

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
