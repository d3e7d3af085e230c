"""`python -m socratic_api`: the API as a container runs it."""

from __future__ import annotations

import sys

from socratic_api.entrypoints.container import main

sys.exit(main())
