"""What ends a process, and how it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from socratic_bench.errors import InvalidSettings, SocraticBenchError


class CannotStart(SocraticBenchError):
    """What the service needs was not there in time."""


def first_cause(error: BaseException) -> BaseException:
    """The error a person should read: in a group ours before any other, the first of its kind."""
    while isinstance(error, BaseExceptionGroup):
        error = (error.subgroup(SocraticBenchError) or error).exceptions[0]
    return error


@contextmanager
def naming(variable: str) -> Iterator[None]:
    """Have InvalidSettings name the environment variable that holds what is wrong."""
    try:
        yield
    except InvalidSettings as error:
        raise InvalidSettings(f"{variable}: {error}") from None
