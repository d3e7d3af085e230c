"""The two lengths of a test: short in `make test`, long in `make test-all`.

A test marked `two_lengths` runs in both, and takes its numbers by `at_length`. A test of Hypothesis
is one without the mark; its profile in tests/conftest.py has the number of examples. A test marked
`long` runs in `make test-all` alone.

A contract suite runs whole on the adapters of this process in both. On a server, `make test` runs
only the tests of it that are marked `smoke`.
"""

from __future__ import annotations

import os
from typing import Final, TypeVar

import pytest

VARIABLE: Final = "SOCRATIC_TEST_LENGTH"
LONG: Final = "long"

Number = TypeVar("Number", int, float)


def at_length(short: Number, long: Number) -> Number:
    """`long` where SOCRATIC_TEST_LENGTH is `long`, else `short`."""
    return long if os.environ.get(VARIABLE) == LONG else short


def on_server(definition: pytest.Item, *marks: pytest.MarkDecorator) -> list[pytest.MarkDecorator]:
    """The marks of a contract test on an adapter with a server: `long`, but for a smoke test."""
    smoke = definition.get_closest_marker("smoke") is not None
    return [*marks, *(() if smoke else (pytest.mark.long,))]
