"""The settings of the API."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from socratic_bench.service_settings import ProcessSettings

Entry = TypeVar("Entry")


def _entries(value: object) -> object:
    """What a variable lists between commas."""
    if not isinstance(value, str):
        return value
    return [entry for each in value.split(",") if (entry := each.strip())]


Listed = Annotated[tuple[Entry, ...], NoDecode, BeforeValidator(_entries)]


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

    api_keys: Listed[SecretStr] = ()
    """Keys, separated by commas: whoever writes, or has texts scored, has to send one of them.
    Without any the API listens on loopback alone."""

    reads_need_key: bool = False
    """Whether whoever reads has to send a key as well."""

    allowed_hosts: Listed[str] = ()
    """Names by which the API may be asked, separated by commas, besides loopback's and the address
    it listens on."""

    loopback_only: bool = False
    """Whether this machine alone reaches the API, though it does not listen on loopback: so it is
    with a container's port that is published on 127.0.0.1."""
