"""The settings of the curator."""

from __future__ import annotations

from pydantic import Field, SecretStr

from socratic_bench.planning.reconciler import QUIET_SECONDS
from socratic_bench.service_settings import ServiceSettings, WorkerProcessSettings


class CuratorSettings(ServiceSettings):
    """How the curator folds."""

    curator_batch: int = Field(default=500, ge=1, le=10_000)
    """Facts folded in one transaction, at most."""


class CuratorProcessSettings(CuratorSettings, WorkerProcessSettings):
    """What the curator needs besides where it is a process of its own."""

    store_url: SecretStr = Field(min_length=1)
    """The address of the store; a secret, since there may be a password in it."""

    curator_quiet: float = Field(default=QUIET_SECONDS, gt=0, le=86_400)
    """Seconds without any change after which what is missing of an experiment is sent again."""

    curator_delete_after_days: float | None = Field(default=None, gt=0, le=36_500)
    """Days for which an experiment is kept once it is complete; without it for ever."""

    health_port: int = Field(default=9103, ge=0, le=65535)
