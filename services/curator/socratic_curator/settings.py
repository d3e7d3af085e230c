"""The settings of the curator."""

from __future__ import annotations

from pydantic import Field, SecretStr

from socratic_bench.service_settings import (
    QueueFunctionSettings,
    ServiceSettings,
    WorkerProcessSettings,
)
from socratic_curator.reconciling.watched import QUIET_SECONDS


class CuratorSettings(ServiceSettings):
    """Settings of the curator's work."""

    curator_batch: int = Field(default=500, ge=1, le=10_000)
    """The most facts folded in one transaction."""


class CuratorProcessSettings(CuratorSettings, WorkerProcessSettings):
    """Settings of the curator as a process of its own."""

    store_url: SecretStr = Field(min_length=1)
    """The address of the store; a secret, since it may hold a password."""

    curator_reconciles: bool = True
    """False where another process looks for lost work, such as a scheduled function."""

    curator_quiet: float = Field(default=QUIET_SECONDS, gt=0, le=86_400)
    """Seconds without a change after which the reconciler sends an experiment's missing work
    again."""

    curator_delete_after_days: float | None = Field(default=None, gt=0, le=36_500)
    """Days that a complete experiment is kept; without a number for ever."""

    health_port: int = Field(default=9103, ge=0, le=65535)


class CuratorFunctionSettings(CuratorSettings, QueueFunctionSettings):
    """Settings of the curator as a function."""

    store_url: SecretStr = Field(min_length=1)
    """The address of the store."""


class SchedulerSettings(CuratorFunctionSettings):
    """Settings of the function that plans each week and looks for lost work each minute."""

    config_object: str = Field(min_length=1)
    """The configuration that is planned each week, such as s3://bucket/artifacts/config.json."""

    # Two passes a minute apart, of which the first was late, still have this between them.
    curator_quiet: float = Field(default=45.0, gt=0, le=86_400)
    """Seconds without a change after which the reconciler sends an experiment's missing work
    again. It looks once a minute."""

    curator_delete_after_days: float | None = Field(default=None, gt=0, le=36_500)
    """Days that a complete experiment is kept; without a number for ever."""
