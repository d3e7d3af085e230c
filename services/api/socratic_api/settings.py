"""The settings of the API."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from socratic_bench.service_settings import FunctionSettings, ProcessSettings

Entry = TypeVar("Entry")
_ORIGIN = r"^https?://[a-z0-9.\-\[\]:]+$"


def _entries(value: object) -> object:
    """Split a variable at its commas."""
    if not isinstance(value, str):
        return value
    return [entry for each in value.split(",") if (entry := each.strip())]


Listed = Annotated[tuple[Entry, ...], NoDecode, BeforeValidator(_entries)]


class ApiSettings(ProcessSettings):
    """Settings of the API: its address, its store, and the freshness of its figures."""

    store_url: SecretStr = Field(default=SecretStr("sqlite:///socratic-bench.db"), min_length=1)
    """The address of the store; a secret, since it may hold a password."""

    broker_url: SecretStr | None = Field(default=None, min_length=1)
    """The address of the broker whose queue depths `/metrics` shows, and that takes responses to
    rescore; optional."""

    host: str = Field(default="127.0.0.1", min_length=1)
    """The address to listen on; 0.0.0.0 for every address of the machine."""

    port: int = Field(default=8000, ge=0, le=65535)
    """The port to listen on; 0 takes a free one."""

    freshness_ms: int = Field(default=50, ge=0, le=60_000)
    """Milliseconds for which figures are served without asking the store for changes."""

    store_timeout: float = Field(default=10.0, gt=0, le=300)
    """Seconds that a request waits for the store before it is refused."""

    api_keys: Listed[SecretStr] = ()
    """Keys, separated by commas, for writing and scoring. Without any the API listens on
    loopback only."""

    reads_need_key: bool = False
    """True if reading needs a key too."""

    allowed_hosts: Listed[str] = ()
    """Further names of the API in requests, separated by commas; loopback's names and the
    listening address always work."""

    cors_origins: Listed[Annotated[str, Field(pattern=_ORIGIN)]] = ()
    """Origins, separated by commas, whose pages may use the API, such as
    `https://bench.example.org`."""

    only_reads: bool = False
    """True if the API may not write into its store, as with credentials that only read."""

    loopback_only: bool = False
    """True if only this machine reaches the API, though it listens on more than loopback, as in
    a container whose port is published on 127.0.0.1."""


class ApiFunctionSettings(FunctionSettings):
    """Settings of the API as a function."""

    store_url: SecretStr = Field(min_length=1)
    """The address of the store."""

    broker_url: SecretStr = Field(min_length=1)
    """The address of the broker that takes what the API submits."""

    api_keys_parameter: str = Field(min_length=1)
    """The parameter of Systems Manager with the keys for writing, separated by commas."""
