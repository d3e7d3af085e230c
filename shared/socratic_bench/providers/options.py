"""Reading what a configuration says about a model, with errors that name the place."""

from __future__ import annotations

from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput


class Options(BaseModel):
    """The options of one provider: a field each, taken as it is, never converted.

    A field with `repr=False` is one whose wrong value is not repeated in an error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


LABEL: Final = "@"
"""What sets several entries of one model apart, where its provider has but a few: the id
`reference/socratic@2` means what `reference/socratic` means, and is a model of its own."""

OptionsT = TypeVar("OptionsT", bound=Options)


def read_options(model: TutorModel, kind: type[OptionsT]) -> OptionsT:
    """The options of `model`.

    Raises InvalidInput naming the model, the option, and what is right.
    """
    try:
        return kind.model_validate(model.options)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = ".".join(str(step) for step in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(kind.model_fields)) or "none"
            problem = f"there is no option {option!r} here; there is {known}"
        else:
            message = first["msg"].removeprefix("Value error, ")
            problem = f"option {option}: {message}{_shown(kind, first)}"
        raise InvalidInput(f"model {model.id}: {problem}") from None


def _shown(kind: type[Options], error: ErrorDetails) -> str:
    """The wrong value, unless its field is not to be shown: it may be a secret in a wrong place."""
    field = kind.model_fields.get(str(error["loc"][0]))
    return f", not {error['input']!r}" if field is None or field.repr else ""


def refuse_address(model: TutorModel) -> None:
    """Raise InvalidInput if `model`, which is not reached by network, has an address."""
    for field in ("base_url", "endpoint"):
        if getattr(model, field) is not None:
            raise InvalidInput(
                f"model {model.id}: {model.provider} models are not reached by network; "
                f"remove its {field}"
            )


def known_name(model: TutorModel, names: tuple[str, ...]) -> str:
    """The part of the model's id after its provider, without the label that may follow it.

    Raises InvalidInput if it is none of `names`.
    """
    name = model.id.partition("/")[2].partition(LABEL)[0]
    if name not in names:
        known = ", ".join(f"{model.provider}/{other}" for other in names)
        raise InvalidInput(f"there is no model {model.id}; there is {known}")
    return name
