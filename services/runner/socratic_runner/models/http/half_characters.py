"""Joins characters that a server cut in two between the pieces of a stream.

An emoji may come as two escapes, one in each piece, or as the bytes of UTF-8, some in each piece.
JSON with such a half is not valid text, so a mark from Unicode's last private plane takes its place
until the pieces are joined.
"""

from __future__ import annotations

import json
import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_RAW_BYTE: Final = re.compile("[\udc80-\udcff]")
_MARKED_HALVES: Final = re.compile("[\U0010f000-\U0010f7ff]+")
_MARKED_BYTES: Final = re.compile("[\U0010f880-\U0010f8ff]+")
_HALF: Final = 0x10F000 - 0xD800
"""The distance from a surrogate to its mark."""

_BYTE: Final = 0x10F800
"""The distance from a byte to its mark."""


def with_marked_halves(data: bytes) -> bytes | None:
    """Return JSON with a mark in place of each half of a character.

    Returns None for data without such a half, and for data that cannot be read as JSON.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="surrogateescape")
        text = _RAW_BYTE.sub(lambda found: chr(ord(found[0]) - 0xDC00 + _BYTE), text)
    else:
        if not _ESCAPE.search(data):
            return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    said = json.dumps(parsed, ensure_ascii=False)
    return _SURROGATE.sub(lambda found: chr(ord(found[0]) + _HALF), said).encode()


def joined_halves(text: str) -> str:
    """Return a text with its marks joined to characters; a lone half becomes U+FFFD."""
    return _MARKED_HALVES.sub(_of_halves, _MARKED_BYTES.sub(_of_bytes, text))


def _of_bytes(found: re.Match[str]) -> str:
    return bytes(ord(each) - _BYTE for each in found[0]).decode(errors="replace")


def _of_halves(found: re.Match[str]) -> str:
    halves = "".join(chr(ord(each) - _HALF) for each in found[0])
    return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
