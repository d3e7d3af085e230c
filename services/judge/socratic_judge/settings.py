"""The settings of the judge."""

from __future__ import annotations

from pydantic import Field

from socratic_bench.service_settings import ServiceSettings


class JudgeSettings(ServiceSettings):
    """What the judge is told at start."""

    judge_batch: int = Field(default=500, ge=1, le=10_000)
    """Responses scored at a time, at most."""
