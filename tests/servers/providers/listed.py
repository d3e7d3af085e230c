"""SOCRATIC_ENDPOINTS for the servers of a test."""

from __future__ import annotations

import json
from collections.abc import Iterable

from socratic_bench.providers.base_urls import origin


def listed(*addresses: str, keys: Iterable[str] = (), aws: bool = False) -> dict[str, str]:
    """The environment in which these addresses may be called, with the keys of these names."""
    entries: dict[str, object] = {}
    for number, address in enumerate(addresses):
        entry = {"origin": origin(address)}
        if aws:
            entries[f"aws-{number}"] = {**entry, "aws": True}
        for name in keys:
            entries[f"{name}-{number}"] = {**entry, "key_variable": name}
        if not aws and not keys:
            entries[f"server-{number}"] = entry
    return {"SOCRATIC_ENDPOINTS": json.dumps(entries)}
