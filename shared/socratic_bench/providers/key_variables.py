"""The environment variable that a configuration names for a model's key; plans leave it out."""

from __future__ import annotations

import re
from typing import Final

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput

KEY_OPTION: Final = "api_key_env"

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_NEVER_SENT: Final = ("AWS_", "SOCRATIC_")


def is_key_variable(name: object) -> bool:
    """Whether an environment variable of this name may hold a model's key."""
    well_formed = isinstance(name, str) and _VARIABLE.fullmatch(name) is not None
    return well_formed and not str(name).startswith(_NEVER_SENT)


def take_key_variable(model: TutorModel) -> tuple[TutorModel, str | None]:
    """Return the model without the variable of its key, and that variable.

    Raises InvalidInput for a wrong name, without repeating it: it may be the key itself.
    """
    # D-074: a plan names neither variable nor key; the operator binds keys to origins.
    if KEY_OPTION not in model.options:
        return model, None
    options = dict(model.options)
    name = options.pop(KEY_OPTION)
    if name is None:
        return model.model_copy(update={"options": options}), None
    if not is_key_variable(name) or model.endpoint is not None:
        raise InvalidInput(f"model {model.id}: option {KEY_OPTION}: {_problem(model)}")
    return model.model_copy(update={"options": options}), str(name)


def _problem(model: TutorModel) -> str:
    if model.endpoint is not None:
        return "the model's endpoint already names its key; remove one of both"
    return (
        "must be the name of an environment variable that holds the key, such as MY_LLM_KEY, and "
        "must not begin with AWS_ or SOCRATIC_"
    )
