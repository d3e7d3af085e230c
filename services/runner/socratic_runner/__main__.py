"""`python -m socratic_runner`: the runner as a container runs it."""

from __future__ import annotations

import sys

from socratic_runner.entrypoints.container import main

sys.exit(main())
