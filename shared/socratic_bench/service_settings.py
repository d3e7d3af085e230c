"""The settings every service has, and how wrong ones are reported.

Settings come from environment variables that begin with `SOCRATIC_`. A service is given one
settings object at start; nothing else reads the environment.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from socratic_bench.errors import InvalidSettings

PREFIX = "SOCRATIC_"


class ServiceSettings(BaseSettings):
    """What every service is told at start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")


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
