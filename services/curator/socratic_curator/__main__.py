"""`python -m socratic_curator`: the curator as a container runs it."""

from __future__ import annotations

import sys

from socratic_curator.entrypoints.container import main

sys.exit(main())
