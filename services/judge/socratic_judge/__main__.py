"""`python -m socratic_judge`: the judge as a container runs it."""

from __future__ import annotations

import sys

from socratic_judge.entrypoints.container import main

sys.exit(main())
