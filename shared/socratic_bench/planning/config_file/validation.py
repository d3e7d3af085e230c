"""Checks nodes against the types of the domain, and scenarios against each other and recordings."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from socratic_bench import invalid_values
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import close_match, problem_of, shown
from socratic_bench.planning.config_file.source import Mistakes, Node, Place
from socratic_bench.providers.recordings import recorded_scenarios

M = TypeVar("M", bound=BaseModel)

_SECRETS = re.compile(
    r"(api|secret|access)[_-]?key|token|secret|password|authorization", re.IGNORECASE
)


def validate(
    kind: type[M], node: Node, mistakes: Mistakes, *, ignore_missing: bool = False
) -> M | None:
    """Return `node` as `kind`; None after a mistake, with every mistake noted.

    Values keep their types: a number in quotes is text. `ignore_missing` notes no missing fields.
    """
    try:
        return kind.model_validate_json(json.dumps(node.plain()), strict=True)
    except ValidationError as error:
        note_mistakes(error, kind, node, mistakes, ignore_missing=ignore_missing)
        return None


def note_mistakes(
    error: ValidationError,
    kind: type[BaseModel],
    node: Node,
    mistakes: Mistakes,
    *,
    ignore_missing: bool = False,
) -> None:
    """Note each error of pydantic at its place in `node`, which is not a valid `kind`."""
    for detail in error.errors(include_url=False):
        if ignore_missing and detail["type"] == "missing":
            continue
        steps = detail["loc"]
        mistakes.add(node.place_of(steps), _problem(detail, kind))


def unknown_field(name: str, known: Collection[str]) -> str:
    """Return the problem of an unknown field of a configuration, which may be a secret's."""
    return _misplaced_secret(name) or invalid_values.unknown_field(name, known)


def _misplaced_secret(name: str) -> str | None:
    if _SECRETS.fullmatch(name):
        return "a secret is never written here: remove it, and put it into the environment"
    return None


def _problem(error: ErrorDetails, kind: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        return _misplaced_secret(str(error["loc"][-1])) or problem_of(error, kind)
    if error["type"] != "string_pattern_mismatch":
        return problem_of(error, kind)
    # Of the patterns there are, only that of a model id has a slash.
    if "/" in error["ctx"]["pattern"]:
        return f"must be `provider/name`, such as `reference/socratic`, not {shown(error['input'])}"
    return f"must be one line without spaces at its ends, not {shown(error['input'])}"


def note_twins(root: Node, scenarios: Sequence[Scenario], notes: Mistakes) -> None:
    """Add a note for each prompt, with its follow-ups, that stands under several ids."""
    ids: dict[tuple[str, ...], list[str]] = {}
    for scenario in scenarios:
        ids.setdefault(scenario.wording, []).append(scenario.id)
    place = root.place_of(("scenarios",))
    for twins in ids.values():
        if len(twins) > 1 and not notes.is_full:
            named = ", ".join(shown(each) for each in twins[:_MOST_NAMED])
            more = len(twins) - _MOST_NAMED
            others = f" and {more} more" if more > 0 else ""
            problem = f"{named}{others} have the same prompt: they measure one question repeatedly"
            notes.add(place, problem)


_PROVIDER: Final = "replay"
_MOST_NAMED: Final = 5


def check_recordings(
    root: Node,
    models: Sequence[TutorModel],
    scenarios: Sequence[Scenario],
    base_folder: Path | None,
    mistakes: Mistakes,
    unused: Mistakes,
) -> None:
    """Note recorded scenarios that the configuration does not have.

    A recording may hold more scenarios than a configuration asks: those go to `unused`. One without
    any scenario of the configuration is a mistake, since each of its runs would fail.
    """
    known = [each.id for each in scenarios]
    for model in models:
        if model.provider != _PROVIDER or base_folder is None or not known:
            continue
        try:
            recorded = recorded_scenarios(model, base_folder)
        except InvalidInput:
            continue  # noted where the model was read
        unknown = {id_: line for id_, line in recorded.items() if id_ not in known}
        if unknown and len(unknown) == len(recorded):
            problem = f"model {model.id}: its lines name no scenario of the configuration; "
            mistakes.add(root.place_of(("models",)), problem + _contrasted(unknown, known))
            continue
        file = model.id.partition("/")[2]
        for id_, line in list(unknown.items())[:_MOST_NAMED]:
            meant = close_match(id_, known)
            remedy = f"; did you mean {shown(meant)}?" if meant else ""
            problem = f"the configuration has no scenario {shown(id_)}{remedy}"
            unused.add(Place(file, line), problem)
        if (more := len(unknown) - _MOST_NAMED) > 0:
            others = "1 more scenario" if more == 1 else f"{more} more scenarios"
            unused.add(Place(file), f"the configuration lacks {others} of it")


def _contrasted(recorded: Collection[str], known: Collection[str]) -> str:
    return f"they name {_listed(recorded)}, the configuration has {_listed(known)}"


def _listed(ids: Collection[str]) -> str:
    named = ", ".join(shown(each) for each in list(ids)[:_MOST_NAMED])
    return f"{named}, …" if len(ids) > _MOST_NAMED else named
