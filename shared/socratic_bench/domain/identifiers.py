"""Deterministic names: the same content has the same name in every process at any time.

A name is a prefix for the kind of thing and the first characters of a hash over canonical JSON.
64 bits within one experiment and repeat leave a chance of about 3e-12 for a collision among
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
    """Return JSON with sorted keys and no spare white space: equal values give equal text."""
    return _CANONICAL.encode(value)


def content_name(prefix: str, value: Any, digits: int = 16) -> str:
    """Return `prefix-` and `digits` hexadecimal digits of a hash over `value` (JSON data)."""
    digest = hashlib.sha256(canonical_json(value).encode()).hexdigest()
    return f"{prefix}-{digest[:digits]}"


def experiment_id(manifest_id: str, occasion: str | None) -> str:
    """Return the name of a manifest on an occasion; None is an occasion of its own."""
    return content_name("exp", [manifest_id, occasion])


def run_id(experiment_id: str, model_id: str, scenario_id: str, repeat: int) -> str:
    """Return the name of one model x one scenario x one repeat within an experiment.

    Names of consecutive runs of a plan sort near each other, so a store with an index in key order
    writes to few pages at a time.
    """
    key = "\x1f".join((experiment_id, model_id, scenario_id, str(repeat)))
    digest = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    return f"run-{experiment_id.removeprefix('exp-')[:8]}-{repeat:06}-{digest}"


def sampling_seed(conversation_key: str, repeat: int, turn: int) -> int:
    """Return the seed for sampling one turn, 0 to 2**31 - 1, for models that take a seed.

    The same repeat of the same conversation has the same seeds in every experiment.
    """
    name = f"{conversation_key}/{repeat}/{turn}"
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFF_FFFF
