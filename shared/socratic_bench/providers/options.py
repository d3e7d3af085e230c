"""The reader of a model's options, with errors that name the place."""

from __future__ import annotations

from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from socratic_bench.domain.experiment.manifest import OwnParameters, TutorModel
from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import problem_of


class Options(BaseModel):
    """The options of one provider: one field each, without conversion of values.

    Errors do not repeat a wrong value of a field with `repr=False`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


OWN_LIMIT: Final = "a model's own limit is its `parameters: {max_tokens: 4000}`, beside `options`"

LABEL: Final = "@"
"""The separator of a label, which makes another model of a provider's fixed one: the id
`reference/socratic@2` answers like `reference/socratic`, and is a model of its own."""

OptionsT = TypeVar("OptionsT", bound=Options)


def read_options(model: TutorModel, kind: type[OptionsT]) -> OptionsT:
    """Return the options of `model`.

    Raises InvalidInput, which names the model, the option and a right value.
    """
    try:
        return kind.model_validate(model.options)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = ".".join(str(step) for step in first["loc"])
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(kind.model_fields)) or "none"
            problem = f"unknown option {option!r}; the options are {known}"
            if option in OwnParameters.model_fields:
                written = f"`parameters: {{{option}: \u2026}}`"
                problem = f"{option} is no option: write {written} beside `options`"
        else:
            field = kind.model_fields.get(str(first["loc"][0]))
            # The value of a hidden field may be a misplaced secret.
            is_shown = field is None or field.repr
            problem = f"option {option}: {problem_of(first, kind, shows_value=is_shown)}"
        raise InvalidInput(f"model {model.id}: {problem}") from None


def refuse_address(model: TutorModel) -> None:
    """Raise InvalidInput if `model`, which uses no network, has an address."""
    for field in ("base_url", "endpoint"):
        if getattr(model, field) is not None:
            raise InvalidInput(
                f"model {model.id}: {model.provider} models use no network; remove its {field}"
            )


def known_name(model: TutorModel, names: tuple[str, ...]) -> str:
    """Return the part of the model's id after its provider, without a label.

    Raises InvalidInput if `names` does not have it.
    """
    name = model.name_at_provider.partition(LABEL)[0]
    if name not in names:
        known = ", ".join(f"{model.provider}/{other}" for other in names)
        raise InvalidInput(f"unknown model {model.id}; the models are {known}")
    return name
