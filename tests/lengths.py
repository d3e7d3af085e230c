"""The two lengths of a test: short in `make test`, long in `make test-all`.

A test marked `two_lengths` runs in both, and takes its numbers by `at_length`. One marked `long`
runs in `make test-all` alone.
"""

from __future__ import annotations

import os
from typing import Final, TypeVar

VARIABLE: Final = "SOCRATIC_TEST_LENGTH"
LONG: Final = "long"

Number = TypeVar("Number", int, float)


def at_length(short: Number, long: Number) -> Number:
    """`long` where SOCRATIC_TEST_LENGTH is `long`, else `short`."""
    return long if os.environ.get(VARIABLE) == LONG else short
