"""The settings of the judge."""

from __future__ import annotations

from pydantic import Field

from socratic_bench.service_settings import (
    QueueFunctionSettings,
    ServiceSettings,
    WorkerProcessSettings,
)


class JudgeSettings(ServiceSettings):
    """Settings of the judge's work."""

    judge_batch: int = Field(default=500, ge=1, le=10_000)
    """The most responses scored at a time."""


class JudgeProcessSettings(JudgeSettings, WorkerProcessSettings):
    """Settings of the judge as a process of its own."""

    health_port: int = Field(default=9102, ge=0, le=65535)


class JudgeFunctionSettings(JudgeSettings, QueueFunctionSettings):
    """Settings of the judge as a function."""
