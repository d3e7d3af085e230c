"""The settings every service has, and how wrong ones are reported.

Settings come from environment variables that begin with `SOCRATIC_`. A secret may also stand in a
file that `SOCRATIC_…_FILE` names. A service gets one settings object at start; nothing else reads
the environment.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from socratic_bench.errors import InvalidSettings
from socratic_bench.invalid_values import control_character, problem_of
from socratic_bench.secret_files import secret_in_file

PREFIX = "SOCRATIC_"


_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://[0-9a-f.:\[\]]+:[0-9]+")


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


LogLevel = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)]


class _SecretFiles(PydanticBaseSettingsSource):
    """Reads the settings that are secrets from the files that the environment names."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        is_secret = SecretStr.__name__ in str(field.annotation)
        text = secret_in_file(f"{PREFIX}{field_name.upper()}") if is_secret else None
        return text, field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {
            name: self.get_field_value(field, name)[0]
            for name, field in self.settings_cls.model_fields.items()
        }
        return {name: text for name, text in found.items() if text is not None}


class ServiceSettings(BaseSettings):
    """What a service is told at start."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _meant(cls, value: Any) -> Any:
        """Refuse values that a file or Kubernetes put into the environment by accident."""
        if isinstance(value, str):
            if problem := control_character(value):
                raise ValueError(problem)
            if _SERVICE_LINK.fullmatch(value):
                raise ValueError(
                    f"is {value}, which Kubernetes sets for a service of that name: set "
                    "`enableServiceLinks: false` for the pod, or rename the service"
                )
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what the caller gives, then the environment, then the files that it names."""
        return init_settings, env_settings, _SecretFiles(settings_cls)


class ProcessSettings(ServiceSettings):
    """What every service is told besides where it is a process of its own."""

    start_deadline: float = Field(default=30.0, gt=0, le=3600)
    """Seconds that the broker and the store may take until they answer for the first time."""

    drain_deadline: float = Field(default=20.0, ge=0, le=3600)
    """Seconds that what is in hand may take to end once the service is told to stop. Unless it is
    given, calls to models have as long as each may take."""

    log_level: LogLevel = "info"


class WorkerProcessSettings(ProcessSettings):
    """What every service is told that works on queues."""

    broker_url: SecretStr = Field(min_length=1)
    """The address of the broker; a secret, since there may be a password in it."""

    health_host: str = Field(default="127.0.0.1", min_length=1)
    """The address `/healthz`, `/readyz` and `/metrics` are at; 0.0.0.0 for every one the machine
    has."""

    health_port: int = Field(ge=0, le=65535)
    """Their port; 0 takes a free one."""


class FunctionSettings(ServiceSettings):
    """What every service is told that AWS Lambda runs as a function."""

    stage: str = Field(default="", max_length=64)
    """The installation that it belongs to, for its metrics."""

    release: str = Field(default="", max_length=64)
    """The name of what was deployed."""

    log_level: LogLevel = "info"


class QueueFunctionSettings(FunctionSettings):
    """What every function is told that works on queues."""

    broker_url: SecretStr = Field(min_length=1)
    """The address of the broker, on SQS."""


S = TypeVar("S", bound=ServiceSettings)


def load_settings(settings: type[S], **given: Any) -> S:
    """The settings of a service: those given, the rest from the environment and secret files.

    Raises InvalidSettings, naming each variable that is wrong or missing.
    """
    try:
        return settings(**given)
    except ValidationError as error:
        problems = [
            f"{_variable(each['loc'])}: {problem_of(each, shows_value=False)}"
            for each in error.errors(include_url=False)
        ]
        raise InvalidSettings(f"wrong settings: {'; '.join(problems)}") from None


def _variable(steps: tuple[int | str, ...]) -> str:
    return PREFIX + "_".join(map(str, steps)).upper()
