"""Readable reasons of failed connections."""

from __future__ import annotations

import os
import re
from typing import Final

import aiohttp

_NUMBERS: Final = re.compile(r"\[Errno (\d+)\]")
"""The beginning of the message where several addresses were tried."""


def why(error: BaseException) -> str:
    """Return the reason of a failed connection on one line: the system's message, if any."""
    if isinstance(error, aiohttp.ClientConnectorDNSError) and error.os_error.strerror:
        return _lower_first(error.os_error.strerror)
    if type(error) is aiohttp.ClientConnectorError:
        number = _number(error.os_error)
        return _lower_first(str(error.os_error) if number is None else os.strerror(number))
    return str(error) or type(error).__name__


def _lower_first(said: str) -> str:
    return said[:1].lower() + said[1:]


def _number(error: OSError) -> int | None:
    """Return the number of an operating system's error; None for several numbers."""
    if error.errno is not None:
        return error.errno if error.errno > 0 else None
    numbers = {int(number) for number in _NUMBERS.findall(str(error))}
    return numbers.pop() if len(numbers) == 1 else None
