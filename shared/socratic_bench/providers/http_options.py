"""The options that models over HTTP share."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.scenario import Name
from socratic_bench.providers.options import Options


class HttpOptions(Options):
    """The options of a model that is reached over HTTP."""

    fixed: ClassVar[frozenset[str]] = frozenset(
        {"model", "messages", "stream", "n", "max_tokens", "max_completion_tokens"}
    )
    """What `extra_body` may not change: the rest of the benchmark relies on it, and a budget on the
    limits of what is written."""

    model: Name | None = None
    """The model's name at its service; None: what stands after the slash of its id. With it one
    benchmark can have the same model twice, under two ids, with another prompt or other options."""

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

    def name_at_service(self, model: TutorModel) -> str:
        """The name that requests carry."""
        return self.model or model.id.partition("/")[2]


class OpenAIOptions(HttpOptions):
    """The options of a model that speaks OpenAI's chat completions."""

    omit: list[Literal["seed", "stream_options", "temperature", "top_p"]] = Field(
        default_factory=list
    )
    """What is not sent, for a model that would refuse it."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """What this model calls the limit of output tokens; None: what its provider calls it."""


class AnthropicOptions(HttpOptions):
    """The options of a model that is spoken to by Anthropic's Messages API."""

    fixed: ClassVar[frozenset[str]] = HttpOptions.fixed | {"system"}
    omit: list[Literal["temperature", "top_p"]] = Field(default_factory=list)
    """What is not sent, for a model that would refuse it."""
