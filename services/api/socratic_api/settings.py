"""The settings of the API."""

from __future__ import annotations

from pydantic import Field, SecretStr

from socratic_bench.service_settings import ProcessSettings


class ApiSettings(ProcessSettings):
    """Where the API listens, what it reads, and how fresh its figures are."""

    store_url: SecretStr = Field(default=SecretStr("sqlite:///socratic-bench.db"), min_length=1)
    """The address of the store it reads; a secret, since there may be a password in it."""

    broker_url: SecretStr | None = Field(default=None, min_length=1)
    """The address of the broker whose queues `/metrics` tells the depths of; none is needed."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """The address it listens on; 0.0.0.0 for every one the machine has."""

    port: int = Field(default=8000, ge=0, le=65535)
    """The port it listens on; 0 takes a free one."""

    freshness_ms: int = Field(default=100, ge=0, le=60_000)
    """For how long figures are served without asking the store whether they have changed."""

    store_timeout: float = Field(default=10.0, gt=0, le=300)
    """Seconds a request waits for the store before it is told to come back later."""
