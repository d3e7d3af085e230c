"""The resources that a model client may use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from socratic_bench.providers.endpoints.endpoint import KeySource
from socratic_bench.providers.spec import Destination


@dataclass(frozen=True, slots=True)
class Access:
    """The folder, the address and the key that a model client may use."""

    base_folder: Path | None
    where: Destination | None
    """None: the client uses no network, or its provider's library knows the address."""

    key: KeySource | None
    """None: the client sends no key."""
