"""The errors that end a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from socratic_bench.errors import InvalidSettings, SocraticBenchError


class CannotStart(SocraticBenchError):
    """The service did not reach its store or broker in time."""


def first_cause(error: BaseException) -> BaseException:
    """Return the error to show: of a group, its first SocraticBenchError, or else its first."""
    while isinstance(error, BaseExceptionGroup):
        error = (error.subgroup(SocraticBenchError) or error).exceptions[0]
    return error


@contextmanager
def naming(variable: str) -> Iterator[None]:
    """Put the name of the wrong environment variable into InvalidSettings."""
    try:
        yield
    except InvalidSettings as error:
        raise InvalidSettings(f"{variable}: {error}") from None
