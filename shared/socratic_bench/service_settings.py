"""The settings every service has, and how wrong ones are reported.

Settings come from environment variables that begin with `SOCRATIC_`. A service is given one
settings object at start; nothing else reads the environment.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from socratic_bench.errors import InvalidSettings

PREFIX = "SOCRATIC_"


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


class ServiceSettings(BaseSettings):
    """What a service is told at start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")


class ProcessSettings(ServiceSettings):
    """What every service is told besides where it is a process of its own."""

    start_deadline: float = Field(default=30.0, gt=0, le=3600)
    """Seconds that the broker and the store may take until they answer for the first time."""

    drain_deadline: float = Field(default=20.0, ge=0, le=3600)
    """Seconds that what is in hand may take to end once the service is told to stop. Unless it is
    given, calls to models have as long as each may take."""

    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = (
        "info"
    )


class WorkerProcessSettings(ProcessSettings):
    """What every service is told that works on queues."""

    broker_url: SecretStr = Field(min_length=1)
    """The address of the broker; a secret, since there may be a password in it."""

    health_host: str = Field(default="127.0.0.1", min_length=1)
    """The address `/healthz`, `/readyz` and `/metrics` are at; 0.0.0.0 for every one the machine
    has."""

    health_port: int = Field(ge=0, le=65535)
    """Their port; 0 takes a free one."""


S = TypeVar("S", bound=ServiceSettings)


def load_settings(settings: type[S], **given: Any) -> S:
    """The settings of a service: those given, the rest from the environment.

    Raises InvalidSettings, naming each variable that is wrong or missing.
    """
    try:
        return settings(**given)
    except ValidationError as error:
        problems = "; ".join(
            f"{PREFIX}{'_'.join(map(str, mistake['loc'])).upper()}: {mistake['msg']}"
            for mistake in error.errors(include_url=False, include_input=False)
        )
        raise InvalidSettings(f"wrong settings: {problems}") from None
