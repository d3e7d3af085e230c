"""What ends with the tests of this process: servers, databases, queues.

pytest closes it at the end of the session. pytest-xdist waits for that; it kills a worker that
takes longer than ten seconds for its `atexit` functions.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from typing import Final

ENDING: Final = ExitStack()
atexit.register(ENDING.close)  # for benchmarks, which run without pytest
