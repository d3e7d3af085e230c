"""What hatch calls before it packs the API: no wheel without the dashboard's pages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILD_SECONDS = 600


class RequirePages(BuildHookInterface[Any]):
    """Builds the pages where their sources are at hand, and looks for them where not."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """End with a sentence where there are no pages; an editable installation needs none yet."""
        if version == "editable":
            return
        build = Path(self.root) / "dashboard" / "build.py"
        if build.exists():
            words = [sys.executable, str(build), "--required"]
            done = subprocess.run(words, timeout=BUILD_SECONDS, check=False)
            if done.returncode:
                sys.exit("The wheel of the API needs the dashboard's pages; see above.")
        elif not (Path(self.root) / "socratic_api" / "static" / "document.html").exists():
            sys.exit("The dashboard's pages are not built: run `make dashboard` first.")
