"""The settings of the curator."""

from __future__ import annotations

from pydantic import Field

from socratic_bench.service_settings import ServiceSettings


class CuratorSettings(ServiceSettings):
    """What the curator is told at start."""

    curator_batch: int = Field(default=500, ge=1, le=10_000)
    """Facts folded in one transaction, at most."""
