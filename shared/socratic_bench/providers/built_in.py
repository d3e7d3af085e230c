"""The built-in providers: OpenAI's API, Anthropic's, Amazon Bedrock, and models in the runner.

A preset holds the differences of a service; a service without one is `openai-compatible` with a
base_url of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, JsonValue, ValidationInfo, field_validator

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.scenario import Name
from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import quoted
from socratic_bench.providers.base_urls import base_url, origin
from socratic_bench.providers.key_variables import KEY_OPTION
from socratic_bench.providers.options import (
    OWN_LIMIT,
    Options,
    known_name,
    read_options,
    refuse_address,
)
from socratic_bench.providers.spec import Destination, ProviderSpec


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

    batch: bool = False
    """Whether calls go into the provider's batches, at half the price, with answers within a day.
    Their replies are not streamed."""

    extra_body: Annotated[dict[str, JsonValue], Field(repr=False)] = Field(default_factory=dict)
    """Further fields of requests, such as `reasoning_effort`; each replaces a parameter of its
    name."""

    headers: Annotated[dict[str, str], Field(repr=False)] = Field(default_factory=dict)
    """Further headers of requests, such as the name of a team. They are stored with the plan."""

    key_header: str | None = None
    """The header that carries the key, as it is, such as `api-key`; None: the provider's usual one.
    """

    @field_validator("headers")
    @classmethod
    def _headers_hold_no_key(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if (problem := header_problem(name)) is not None:
                raise ValueError(f"{quoted(name)} {problem}")
            if is_credential(name, value):
                raise ValueError(
                    f"{quoted(name)} would be stored with its value: put the key into the "
                    f"environment, and set key_header: {name}"
                )
            if not HEADER_VALUE.fullmatch(value):
                raise ValueError(f"{quoted(name)} must have a value of one line of plain ASCII")
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("names a header twice")
        return headers

    @field_validator("key_header")
    @classmethod
    def _key_header_is_free(cls, name: str | None, others: ValidationInfo) -> str | None:
        if name is not None and (problem := header_problem(name)) is not None:
            raise ValueError(problem)
        if name is not None and name.lower() in map(str.lower, others.data.get("headers", ())):
            raise ValueError("is among the headers too")
        return name

    @field_validator("extra_body")
    @classmethod
    def _sets_no_reserved_field(cls, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        taken = ", ".join(sorted(cls.fixed & extra.keys()))
        if taken:
            raise ValueError(f"{taken} cannot be set here{_instead(taken)}")
        return extra

    def name_at_service(self, model: TutorModel) -> str:
        """Return the model's name in requests."""
        return self.model or model.name_at_provider


HEADER_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,498}[\x21-\x7e])?")
_HEADER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
_OWN_HEADERS: Final = re.compile(
    r"host|connection|content-.*|transfer-encoding|accept-encoding|user-agent|te|trailer|upgrade"
    r"|expect|proxy-.*|keep-alive|anthropic-version",
    re.IGNORECASE,
)
"""Headers that the client sets by itself, or that change the form of a request."""

_CREDENTIAL: Final = re.compile(r"key|token|secret|passw|auth|cookie|credential", re.IGNORECASE)
_KEY_ITSELF: Final = re.compile(r"(bearer|basic) |sk-", re.IGNORECASE)


def header_problem(name: str) -> str | None:
    """Return why a request cannot have a header of this name; None: it can."""
    if not _HEADER_NAME.fullmatch(name):
        return "is not the name of a header"
    return "is a header of the client's own" if _OWN_HEADERS.fullmatch(name) else None


def is_credential(name: str, value: str) -> bool:
    """Whether a header may carry a key, by its name or its value."""
    return bool(_CREDENTIAL.search(name) or _KEY_ITSELF.match(value))


def _instead(taken: str) -> str:
    return f": {OWN_LIMIT}" if "tokens" in taken else ""


class OpenAIOptions(HttpOptions):
    """The options of a model behind OpenAI's chat completions."""

    omit: list[Literal["seed", "stream_options", "temperature", "top_p"]] = Field(
        default_factory=list
    )
    """Parameters that requests leave out, since the model would refuse them."""

    system_role: Literal["system", "developer", "user"] = "system"
    """The role of the system prompt. With `user` it stands before the student's first message, for
    a model that refuses the role `system`."""

    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The model's own field for the limit of output tokens; None: its provider's."""


class AnthropicOptions(HttpOptions):
    """The options of a model behind Anthropic's Messages API."""

    fixed: ClassVar[frozenset[str]] = HttpOptions.fixed | {"system"}
    omit: list[Literal["temperature", "top_p"]] = Field(default_factory=list)
    """Parameters that requests leave out, since the model would refuse them."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One service, or one kind of server."""

    base_url: str | None
    """Its base URL; None: the configuration must give one."""

    key_variable: str | None
    """The environment variable of its key; None: no key."""

    max_tokens_field: str = "max_tokens"
    """Its field for the limit of output tokens."""

    seed_field: str | None = None
    """Its field for the sampling seed; None: none is known."""

    stream_options: bool = True
    """Whether it takes `stream_options`, which add token counts to a stream. Services that do not
    take them send the counts anyway."""


_LOCAL: Final = "http://127.0.0.1"

PRESETS: Final[dict[str, Preset]] = {
    "openai": Preset(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        max_tokens_field="max_completion_tokens",
        seed_field="seed",
    ),
    "openrouter": Preset("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", seed_field="seed"),
    "gemini": Preset("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "mistral": Preset(
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        seed_field="random_seed",
        stream_options=False,
    ),
    "groq": Preset("https://api.groq.com/openai/v1", "GROQ_API_KEY", seed_field="seed"),
    "deepseek": Preset("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "together": Preset("https://api.together.xyz/v1", "TOGETHER_API_KEY", seed_field="seed"),
    "xai": Preset("https://api.x.ai/v1", "XAI_API_KEY", seed_field="seed"),
    "ollama": Preset(f"{_LOCAL}:11434/v1", None, seed_field="seed"),
    "vllm": Preset(f"{_LOCAL}:8000/v1", None, seed_field="seed"),
    "lmstudio": Preset(f"{_LOCAL}:1234/v1", None, seed_field="seed"),
    "llamacpp": Preset(f"{_LOCAL}:8080/v1", None, seed_field="seed"),
    "openai-compatible": Preset(None, None),
}


ANTHROPIC: Final = Preset("https://api.anthropic.com", "ANTHROPIC_API_KEY")


def _check_http(
    options: type[HttpOptions], preset: Preset, model: TutorModel, _: Path | None
) -> None:
    if KEY_OPTION in model.options:
        raise InvalidInput(
            f"model {model.id}: its plan names an environment variable, which services do not "
            "read; submit the configuration again, and have the operator of the services bind the "
            "key to its origin by SOCRATIC_ENDPOINTS"
        )
    read_options(model, options)
    _destination(preset, model)


def _destination(preset: Preset, model: TutorModel) -> Destination:
    url = base_url(model, preset.base_url, takes_query=True)
    own = preset.base_url is not None and origin(url) == origin(preset.base_url)
    return Destination(url, own=own, usual_key=preset.key_variable if own else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAISpec(ProviderSpec):
    """A provider with OpenAI's chat completions, which the runner's client for them calls."""

    preset: Preset
    """Its differences from others."""


def openai_spec(preset: Preset) -> OpenAISpec:
    """Return the spec of a service with OpenAI's chat completions."""
    return OpenAISpec(
        options=OpenAIOptions,
        check=partial(_check_http, OpenAIOptions, preset),
        destination=partial(_destination, preset),
        preset=preset,
    )


HTTP_PROVIDERS: Final[dict[str, ProviderSpec]] = {
    "anthropic": ProviderSpec(
        AnthropicOptions,
        partial(_check_http, AnthropicOptions, ANTHROPIC),
        partial(_destination, ANTHROPIC),
    ),
    **{name: openai_spec(preset) for name, preset in PRESETS.items()},
}


REFERENCE_TUTORS: Final = ("socratic", "lecturer", "hedger", "drifter", "faulty", "student")
REFERENCE_STUDENTS: Final = ("student", "faulty")
"""Those of them that may play the student."""

LOCAL_MODELS: Final = ("smollm2", "smollm2-fewshot")


class ReferenceOptions(Options):
    """The options of a reference tutor."""

    latency_ms: Annotated[int, Field(ge=0, le=600_000)] = 0
    """The simulated latency of a call, reported exactly."""


class LocalOptions(Options):
    """The options of a local model."""

    max_tokens: Annotated[int, Field(ge=1, le=2000)] | None = None
    """A lower limit than the benchmark's `max_tokens`, for a slow machine.

    A limit below 500 costs coverage: an answer cut off there has no score.
    """


def _check_reference(model: TutorModel, _: Path | None) -> None:
    known_name(model, REFERENCE_TUTORS)
    refuse_address(model)
    read_options(model, ReferenceOptions)


def _check_local(model: TutorModel, _: Path | None) -> None:
    known_name(model, LOCAL_MODELS)
    refuse_address(model)
    read_options(model, LocalOptions)


def _simulated_latency_ms(model: TutorModel) -> int:
    latency = model.options.get("latency_ms", 0)
    return latency if isinstance(latency, int) else 0


REFERENCE: Final = ProviderSpec(
    ReferenceOptions,
    _check_reference,
    free=True,
    reference=True,
    simulated_latency_ms=_simulated_latency_ms,
)
LOCAL: Final = ProviderSpec(LocalOptions, _check_local, free=True)


IMPORTED_PROVIDER: Final = "imported"
"""The first part of the id of a tutor whose answers came with a file; the tool's name follows."""


IMPORTED_FROM: Final = "Imported from "
"""The beginning of the notes of an experiment with such tutors; the file and its tool follow."""


def _refuse_imported(model: TutorModel, _: Path | None) -> None:
    raise InvalidInput(
        f"model {model.id}: its answers were imported from a file, and no call can ask it; name "
        "the model itself, with its provider"
    )


IMPORTED: Final = ProviderSpec(Options, _refuse_imported, free=True)


_OWN: Final = re.compile(r"https://bedrock-runtime(-fips)?\.[a-z0-9-]+\.amazonaws\.com(\.cn)?")
"""Its own origins. Other names below amazonaws.com may belong to any AWS customer."""


class BedrockOptions(Options):
    """The options of a model on Bedrock."""

    region: str | None = None
    """The AWS region of the model; None: its ARN's, the environment's or the profile's."""

    stream: bool = True
    """Whether the model streams its reply, which shows the latency of the first token. Some models
    cannot."""

    additional_model_request_fields: dict[str, JsonValue] = Field(default_factory=dict)
    """Further fields that the client passes to the model, such as the limit of reasoning."""

    omit: list[Literal["temperature", "top_p"]] = Field(default_factory=list)
    """Sampling parameters that the client leaves out, since the model does not take them."""

    system_role: Literal["system", "user"] = "system"
    """The role of the system prompt. With `user` it stands before the student's first message, for
    a model without system messages."""


def destination(model: TutorModel) -> Destination | None:
    """Return the destination that replaces the region's own address, or None.

    Raises InvalidInput, without the address, which may hold a password.
    """
    if model.base_url is None:
        return None
    if "@" in model.base_url:
        raise InvalidInput(
            f"model {model.id}: base_url holds a user or a password; AWS credentials belong into "
            "the environment or a profile"
        )
    url = base_url(model, None)
    return Destination(url, own=_OWN.fullmatch(origin(url)) is not None, signed=True)


def _check_bedrock(model: TutorModel, _: Path | None) -> None:
    read_options(model, BedrockOptions)
    if destination(model) is None and model.endpoint is not None:
        raise InvalidInput(f"model {model.id}: its endpoint needs the base_url that goes with it")


BEDROCK: Final = ProviderSpec(BedrockOptions, _check_bedrock, destination)
