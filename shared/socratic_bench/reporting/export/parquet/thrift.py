"""Thrift's compact protocol, as much of it as the metadata of Parquet needs.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

_TRUE: Final = 1
_I32: Final = 5
_I64: Final = 6
_BINARY: Final = 8
_LIST: Final = 9
_STRUCT: Final = 12

_SHORT_LIST: Final = 14
"""The greatest length that stands in the first byte of a list."""


class Value(NamedTuple):
    """An encoded value with its type."""

    kind: int
    encoded: bytes


TRUE: Final = Value(_TRUE, b"")
"""A field that is true: its type says so."""


def i32(number: int) -> Value:
    return Value(_I32, _zigzag(number))


def i64(number: int) -> Value:
    return Value(_I64, _zigzag(number))


def text(string: str) -> Value:
    encoded = string.encode()
    return Value(_BINARY, varint(len(encoded)) + encoded)


def listed(values: Sequence[Value]) -> Value:
    """Return a list of values of one type; an empty one is of structs."""
    size, kind = len(values), values[0].kind if values else _STRUCT
    head = bytes([size << 4 | kind]) if size <= _SHORT_LIST else bytes([0xF0 | kind]) + varint(size)
    return Value(_LIST, head + b"".join(value.encoded for value in values))


def struct(fields: dict[int, Value]) -> Value:
    """Return a struct, given its fields by number, in rising order and at most 15 apart."""
    encoded, last = bytearray(), 0
    for number, value in fields.items():
        encoded.append((number - last) << 4 | value.kind)
        encoded += value.encoded
        last = number
    return Value(_STRUCT, bytes(encoded) + b"\0")


def encoded_struct(encoded: bytes) -> Value:
    """Return a struct that was encoded before."""
    return Value(_STRUCT, encoded)


def varint(number: int) -> bytes:
    """Return a number of 0 or more, seven bits a byte, the lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else -(number << 1) - 1)
