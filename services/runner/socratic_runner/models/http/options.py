"""The options that models over HTTP share."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, JsonValue, field_validator

from socratic_runner.models.options import Options


class HttpOptions(Options):
    """The options of a model that is reached over HTTP."""

    fixed: ClassVar[frozenset[str]] = frozenset(
        {"model", "messages", "stream", "n", "max_tokens", "max_completion_tokens"}
    )
    """What `extra_body` may not change: the rest of the benchmark relies on it, and a budget on the
    limits of what is written."""

    api_key_env: Annotated[str | None, Field(pattern=r"^[A-Z][A-Z0-9_]*$", repr=False)] = None
    """The environment variable that holds the key, where it is not the provider's usual one.

    A wrong value is never shown: it may be the key itself.
    """

    stream: bool = True
    """Whether the reply comes piece by piece, which shows how long its first token took."""

    extra_body: Annotated[dict[str, JsonValue], Field(repr=False)] = Field(default_factory=dict)
    """Sent besides, such as `reasoning_effort`; replaces a parameter of the same name."""

    @field_validator("extra_body")
    @classmethod
    def _leaves_the_question_alone(cls, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        taken = ", ".join(sorted(cls.fixed & extra.keys()))
        if taken:
            raise ValueError(f"{taken} cannot be set here")
        return extra
