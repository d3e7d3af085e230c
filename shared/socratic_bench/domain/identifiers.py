"""Deterministic names: the same content has the same name, whoever computes it, whenever.

A name is the first characters of a hash over canonical JSON, behind a prefix that says what is
named. 64 bits within one experiment and repeat leave a chance of about 3e-12 for a collision among
ten thousand models and scenarios.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spare white space: equal values give equal text."""
    return _CANONICAL.encode(value)


def content_name(prefix: str, value: Any, digits: int = 16) -> str:
    """`prefix-` and `digits` hexadecimal digits that depend on all of `value` (JSON data)."""
    digest = hashlib.sha256(canonical_json(value).encode()).hexdigest()
    return f"{prefix}-{digest[:digits]}"


def experiment_id(manifest_id: str, occasion: str | None) -> str:
    """An experiment is a manifest plus an occasion; none is an occasion of its own."""
    return content_name("exp", [manifest_id, occasion])


def run_id(experiment_id: str, model_id: str, scenario_id: str, repeat: int) -> str:
    """The name of one model x one scenario x one repeat within an experiment.

    Runs that are planned one after another have names that sort near each other: a store that
    keeps them in the order of their names then writes to few places at a time.
    """
    key = "\x1f".join((experiment_id, model_id, scenario_id, str(repeat)))
    digest = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    return f"run-{experiment_id.removeprefix('exp-')[:8]}-{repeat:06}-{digest}"


def sampling_seed(conversation_key: str, repeat: int, turn: int) -> int:
    """The seed for sampling one turn: 0 to 2**31 - 1, for models that take one.

    Whichever experiment asks, the same repeat of the same conversation has the same seeds.
    """
    name = f"{conversation_key}/{repeat}/{turn}"
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFF_FFFF
