"""The common options of models over HTTP."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.scenario import Name
from socratic_bench.providers.options import Options


class HttpOptions(Options):
    """The options of a model over HTTP."""

    fixed: ClassVar[frozenset[str]] = frozenset(
        {"model", "messages", "stream", "n", "max_tokens", "max_completion_tokens"}
    )
    """The fields that `extra_body` may not set: the benchmark relies on them, and a budget on the
    limits of output tokens."""

    model: Name | None = None
    """The model's name at its service; None: the part of its id after the slash. It lets one
    benchmark have the same model under two ids, with different prompts or options."""

    stream: bool = True
    """Whether the model streams its reply, which shows the latency of the first token."""

    extra_body: Annotated[dict[str, JsonValue], Field(repr=False)] = Field(default_factory=dict)
    """Further fields of requests, such as `reasoning_effort`; each replaces a parameter of its
    name."""

    @field_validator("extra_body")
    @classmethod
    def _sets_no_reserved_field(cls, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        taken = ", ".join(sorted(cls.fixed & extra.keys()))
        if taken:
            raise ValueError(f"{taken} cannot be set here")
        return extra

    def name_at_service(self, model: TutorModel) -> str:
        """Return the model's name in requests."""
        return self.model or model.id.partition("/")[2]


class OpenAIOptions(HttpOptions):
    """The options of a model behind OpenAI's chat completions."""

    omit: list[Literal["seed", "stream_options", "temperature", "top_p"]] = Field(
        default_factory=list
    )
    """Parameters that requests leave out, since the model would refuse them."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The model's own field for the limit of output tokens; None: its provider's."""


class AnthropicOptions(HttpOptions):
    """The options of a model behind Anthropic's Messages API."""

    fixed: ClassVar[frozenset[str]] = HttpOptions.fixed | {"system"}
    omit: list[Literal["temperature", "top_p"]] = Field(default_factory=list)
    """Parameters that requests leave out, since the model would refuse them."""
