"""The settings of the judge."""

from __future__ import annotations

from pydantic import Field

from socratic_bench.service_settings import ServiceSettings, WorkerProcessSettings


class JudgeSettings(ServiceSettings):
    """How the judge scores."""

    judge_batch: int = Field(default=500, ge=1, le=10_000)
    """Responses scored at a time, at most."""


class JudgeProcessSettings(JudgeSettings, WorkerProcessSettings):
    """What the judge needs besides where it is a process of its own."""

    health_port: int = Field(default=9102, ge=0, le=65535)
