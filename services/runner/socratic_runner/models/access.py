"""What a client of a model may use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from socratic_bench.providers.endpoints.endpoint import KeySource
from socratic_bench.providers.spec import Destination


@dataclass(frozen=True, slots=True)
class Access:
    """What a client of a model may use: the folder of its files, its address, its key."""

    base_folder: Path | None
    where: Destination | None
    """None: it uses no network, or the address that its provider's library knows."""

    key: KeySource | None
    """None: its calls carry none."""
