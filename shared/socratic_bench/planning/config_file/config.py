"""Reads the configuration of a benchmark into a manifest, and reports all mistakes at once.

A configuration is YAML or JSON, in this project's shape or its predecessor's. Its fields are those
of the domain's types. This module puts them together and reports each mistake at its place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, create_model
from pydantic.json_schema import models_json_schema

from socratic_bench.domain.aggregates.statistics import FEWEST_CLUSTERS
from socratic_bench.domain.experiment.manifest import (
    FEWEST_ROUNDS,
    PROMPT_NAME,
    Experiment,
    Grader,
    Manifest,
    Student,
    TutorModel,
    VectorWeights,
    weighted_name,
)
from socratic_bench.domain.scenario import Name, Scenario
from socratic_bench.errors import InvalidConfig, InvalidInput, Mistake
from socratic_bench.invalid_values import shown
from socratic_bench.planning.config_file.changes import Changes, part_kept, with_variables
from socratic_bench.planning.config_file.documents import parse_document, read_text
from socratic_bench.planning.config_file.model_selection import (
    GRADER,
    LENGTH,
    PROMPTS,
    SAME,
    STUDENT,
    SYSTEM_PROMPT,
    Length,
    ModelSelection,
    PromptFiles,
    RoleSelection,
    check_profile,
    graded_name,
)
from socratic_bench.planning.config_file.predecessor import Predecessor, is_predecessor
from socratic_bench.planning.config_file.scenario_selection import ScenarioSelection
from socratic_bench.planning.config_file.scenario_tables import table_schemas
from socratic_bench.planning.config_file.source import (
    Mistakes,
    Node,
    Place,
    TooManyMistakes,
    Unreadable,
)
from socratic_bench.planning.config_file.validation import (
    check_recordings,
    note_twins,
    unknown_field,
    validate,
)
from socratic_bench.planning.config_file.weights import WEIGHTS, checked_weights
from socratic_bench.planning.model_catalogue import ModelCatalogue
from socratic_bench.providers.registry import is_free
from socratic_bench.scoring.profile import CANONICAL, SAME_RULER

_SELECTIONS = ("models", "scenarios", GRADER, STUDENT)
_PLAN_FIELDS = {
    name: field
    for name, field in Manifest.model_fields.items()
    if name not in {"pinned_at", "stopped_after", "weightings"}
}
"""The fields of a plan but those that the store writes (D-025), and the weightings, whose names
follow from `weights`."""

_FIELDS = (*_PLAN_FIELDS, PROMPTS, "occasion", LENGTH, WEIGHTS)

_OTHERS: dict[str, Any] = {
    name: (field.annotation, field)
    for name, field in _PLAN_FIELDS.items()
    if name not in _SELECTIONS
}
SETTINGS = create_model(
    "Settings",
    occasion=(Name | None, None),
    length=(Length, "provider"),
    weights=(VectorWeights | None, None),
    **_OTHERS,
)
"""The fields beside models and scenarios: the rest of a manifest, the occasion, the length, and the
weights of the vectors."""


_UNCHANGED = Changes()


@dataclass(frozen=True, slots=True)
class BenchmarkConfig:
    """The benchmark that a configuration describes."""

    manifest: Manifest
    occasion: str | None
    """The name that tells this execution from others of the same manifest, such as an ISO week."""

    base_folder: Path | None
    """The folder that relative paths start from, such as a recording's; None forbids files."""

    key_variables: Mapping[str, str] = field(default_factory=dict)
    """The environment variable that holds the key of a model, by the model's id, where the
    configuration names one. No part of the manifest: only a command on the spot reads it."""

    weighted_profile: str | None = None
    """The profile with the weights of the configuration; None without any."""

    unused: tuple[Mistake, ...] = ()
    """Fields of a predecessor's file, and scenarios of a recording, without a use here; scenarios
    in which the student says the same; the part that changes keep. They are not mistakes."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person has to know who has services carry the benchmark out."""
        unused = tuple(map(str, self.unused))
        if self.weighted_profile is None:
            return unused
        return (*unused, f"--profile {self.weighted_profile} reads the results by its weights")

    def experiment(self, created_at: datetime, *, submitted: bool = True) -> Experiment:
        """Return the experiment as a new one, `submitted` to services or not."""
        return Experiment(
            manifest=self.manifest,
            occasion=self.occasion,
            created_at=created_at,
            submitted=submitted,
        )


def read_config(
    path: str | Path, catalogue: ModelCatalogue, changes: Changes = _UNCHANGED
) -> BenchmarkConfig:
    """Read the configuration in a file; relative paths start from the folder of the file.

    `${NAME}` in its name, notes and occasion stands for a variable of the environment. Raises
    InvalidConfig with every mistake in it, or with the reason why it cannot be read.
    """
    path = Path(path)
    try:
        text = read_text(path)
    except InvalidInput as error:
        raise InvalidConfig([Mistake(str(path), str(error))]) from None
    return parse_config(
        text,
        name=str(path),
        base_folder=path.parent,
        catalogue=catalogue,
        changes=changes,
        variables=os.environ,
    )


def parse_config(
    text: str,
    *,
    name: str,
    base_folder: Path | None,
    catalogue: ModelCatalogue,
    changes: Changes = _UNCHANGED,
    variables: Mapping[str, str] | None = None,
) -> BenchmarkConfig:
    """Read the configuration in `text`, which mistakes call `name`.

    A name that ends in `.json`, `.yaml` or `.yml` says how to read it; otherwise text that begins
    with a brace is JSON. A `base_folder` of None forbids it to name any file: for text that came
    from elsewhere, such as a request; `variables` of None forbids `${NAME}` likewise. Raises
    InvalidConfig with every mistake in it.
    """
    mistakes = Mistakes()
    try:
        root = _parsed(text, name, mistakes)
        written = with_variables(root, variables, mistakes, but=changes.fields)
        root = changes.applied(written, mistakes)
        repeats = _repeats_in(written)
        return _config(root, repeats, base_folder, catalogue, changes, mistakes)
    except TooManyMistakes:
        raise mistakes.as_error() from None


_WEEK: Final = re.compile(r"([0-9]{4})[-_ ]?[wW][-_ ]?([0-9]{1,2})")
_MOST_NOTES: Final = 10
"""The most notes about texts in YAML that end before a comment."""


def _week_problem(occasion: str) -> str | None:
    """Return the note for an occasion that looks like an ISO week and is none."""
    found = _WEEK.fullmatch(occasion)
    if found is None:
        return None
    year, week = int(found[1]), int(found[2])
    try:
        date.fromisocalendar(year, week, 1)
    except ValueError:
        return f"{year:04} has no week {week}: pages by week do not show {occasion}"
    right = f"{year:04}-W{week:02}"
    return None if occasion == right else f"pages by week do not show {occasion}: write {right}"


def _parsed(text: str, name: str, mistakes: Mistakes) -> Node:
    try:
        root = parse_document(text, name, mistakes)
    except Unreadable as error:
        mistakes.add(error.place, error.problem)
        raise mistakes.as_error() from None
    if root.fields is None:
        problem = f"must be a mapping with `models`, not {shown(root.plain())}"
        mistakes.add(root.place, problem)
        raise mistakes.as_error()
    return root


def _config(
    root: Node,
    every_repeat: int,
    base_folder: Path | None,
    catalogue: ModelCatalogue,
    changes: Changes,
    mistakes: Mistakes,
) -> BenchmarkConfig:
    unused = _noted(mistakes)
    predecessor = None
    if is_predecessor(root):
        predecessor = Predecessor(catalogue.providers, mistakes, unused)
        root = predecessor.document(root, _FIELDS)
    _check_names(root, mistakes)
    prompts = PromptFiles(base_folder, mistakes)
    root = prompts.written_out(root)
    settings = _settings(root, mistakes)
    selection = ModelSelection(base_folder, catalogue, mistakes, prompts)
    every_model = selection.read(root)
    models = changes.kept_models(every_model, mistakes)
    roles = RoleSelection(selection, mistakes)
    grader = roles.grader(root, models)
    every_scenario = _scenarios(root, base_folder, mistakes, predecessor)
    scenarios = changes.kept_scenarios(every_scenario, mistakes)
    others = () if grader is None else (grader.model,)
    student = roles.student(root, (*models, *others), scenarios)
    check_recordings(root, models, every_scenario, base_folder, mistakes, unused)
    note_twins(root, scenarios, unused)
    weights: dict[str, dict[str, float]] = {}
    profile = CANONICAL
    if settings is not None:
        called = (*models, *others) if student is None else (*models, *others, student.model)
        _check_together(root, settings, called, mistakes)
        _check_stop(root, settings, scenarios, mistakes)
        dimensions = tuple(dict.fromkeys(each.dimension for each in every_scenario))
        given, profile = settings.model_dump()[WEIGHTS], _profile(settings, grader)
        weights = checked_weights(root, given or {}, profile, dimensions, mistakes)
    if settings is None or mistakes:
        raise mistakes.as_error()
    written = settings.model_dump(exclude_unset=True, exclude={LENGTH, WEIGHTS})
    occasion = written.pop("occasion", None)
    _note_week(root, occasion, unused)
    if grader is not None:
        written[GRADER] = grader
    if student is not None:
        written[STUDENT] = student
    if profile != CANONICAL:
        written["profile"] = profile
    weighted = weighted_name(profile, weights) if weights else None
    if weighted is not None:
        written["weightings"] = {weighted: weights}
    manifest = Manifest(models=models, scenarios=scenarios, **written)
    counts = (
        (len(models), len(every_model), "models"),
        (len(scenarios), len(every_scenario), "scenarios"),
        (manifest.repeats, every_repeat, "repeats"),
    )
    if changes and (part := part_kept(counts)):
        manifest = _part_of(manifest, part, changes, unused)
    return BenchmarkConfig(
        manifest, occasion, base_folder, selection.key_variables, weighted, unused.in_order()
    )


def _noted(mistakes: Mistakes) -> Mistakes:
    """Return the first notes of the reader, in a list of their own."""
    notes = Mistakes()
    for place, problem in mistakes.notes[:_MOST_NOTES]:
        notes.add(place, problem)
    return notes


def _note_week(root: Node, occasion: str | None, notes: Mistakes) -> None:
    if occasion is not None and (told := _week_problem(occasion)) and not notes.is_full:
        notes.add(root.place_of(("occasion",)), told)


def _part_of(manifest: Manifest, part: str, changes: Changes, notes: Mistakes) -> Manifest:
    """Return the plan of a part by its own name, and note what that is."""
    name = changes.name_of_part(manifest.name, part)
    says_so = "" if name == manifest.name else "; its name says so"
    own = "an experiment of its own, which shares its answers with the whole one"
    notes.add(Place(part), own + says_so)
    return manifest.model_copy(update={"name": name})


def _repeats_in(written: Node) -> int:
    repeats = written.entry("repeats")
    if repeats is not None and isinstance(repeats.value, int):
        return repeats.value
    default: int = Manifest.model_fields["repeats"].default
    return default


def _profile(settings: BaseModel, grader: Grader | None) -> str:
    """Return the profile of the plan, given who counts lengths and who grades."""
    written = settings.model_dump()
    profile: str = SAME_RULER if written[LENGTH] == SAME else written["profile"]
    return profile if grader is None else graded_name(profile)


def _scenarios(
    root: Node, base_folder: Path | None, mistakes: Mistakes, predecessor: Predecessor | None
) -> tuple[Scenario, ...]:
    selection = ScenarioSelection(base_folder, mistakes)
    listed = selection.written_out(root)
    if listed is not None and predecessor is not None:
        listed = predecessor.scenarios(listed)
    return () if listed is None else selection.read(listed)


def _check_names(root: Node, mistakes: Mistakes) -> None:
    for name, node in (root.fields or {}).items():
        if name == "prompt" and node.fields is None:
            mistakes.add(node.place, unknown_field(name, (SYSTEM_PROMPT,)))
        elif name not in _FIELDS:
            mistakes.add(node.place, unknown_field(name, _FIELDS))


def _check_together(
    root: Node, settings: BaseModel, models: Sequence[TutorModel], mistakes: Mistakes
) -> None:
    """Note fields that contradict each other."""
    written = settings.model_dump(exclude_unset=True)
    unpriced = [model.id for model in models if model.price is None and not is_free(model)]
    # D-127: a model of unknown price cannot be held to a budget.
    if written.get("budget") is not None and unpriced:
        problem = (
            f"a budget needs the price of every model, 0 for one that costs nothing; "
            f"{', '.join(unpriced)} has none"
        )
        mistakes.add(root.place_of(("budget",)), problem)
    planned = settings.model_dump()["parameters"]["max_tokens"]
    for model in models:
        longest = model.parameters.max_tokens or planned
        if model.context_tokens is not None and model.context_tokens <= longest:
            problem = (
                f"model {model.id}: its context_tokens of {model.context_tokens} leave no room "
                f"besides max_tokens of {longest}"
            )
            mistakes.add(root.place_of(("models",)), problem)


def _check_stop(
    root: Node, settings: BaseModel, scenarios: Sequence[Scenario], mistakes: Mistakes
) -> None:
    """Note why repeats could not stop by an interval."""
    written = settings.model_dump()
    if written.get("stop_when") is None:
        return
    problems = []
    if 0 < len(scenarios) < FEWEST_CLUSTERS:
        problems.append(
            f"an interval needs {FEWEST_CLUSTERS} scenarios, not {len(scenarios)}: add some, or "
            "leave stop_when out (--set stop_when=null)"
        )
    if written["repeats"] <= FEWEST_ROUNDS:
        problems.append(
            f"the first look comes after {FEWEST_ROUNDS} repeats: raise `repeats`, the most that "
            "may be bought"
        )
    for problem in problems:
        mistakes.add(root.place_of(("stop_when",)), problem)


def _settings(root: Node, mistakes: Mistakes) -> BaseModel | None:
    fields = root.fields or {}
    check_profile(root, mistakes)
    known = {name: node for name, node in fields.items() if name in SETTINGS.model_fields}
    return validate(SETTINGS, root.with_fields(known), mistakes)


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_PROMPT: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"file": {"type": "string"}},
            "required": ["file"],
            "additionalProperties": False,
        },
    ],
    "description": "The system prompt, or `{file: prompts/tutor.txt}`.",
}


def config_schema() -> dict[str, Any]:
    """Return the schema of a configuration, as JSON has it."""
    kinds = (SETTINGS, TutorModel, Scenario, Grader, Student)
    _, found = models_json_schema([(kind, "validation") for kind in kinds])
    types: dict[str, Any] = found["$defs"]
    settings = types.pop(SETTINGS.__name__)
    settings["properties"]["system_prompt"] = _PROMPT
    none = {"anyOf": [*_PROMPT["anyOf"], {"type": "null"}]}
    types["TutorModel"]["properties"]["system_prompt"] = _PROMPT | none
    del types["TutorModel"]["properties"]["prompt"]
    named = {"type": "string", "description": "`provider/name`"}
    model = {"anyOf": [named, {"$ref": "#/$defs/TutorModel"}]}
    types["Grader"]["properties"]["model"] = model
    types["Student"]["properties"]["model"] = model
    # A scenario of the pack is named by its id, alone or with other fields.
    types["Scenario"]["required"] = ["id"]
    scenario = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Scenario"}, *table_schemas()]}
    properties = {
        "models": {"type": "array", "items": model, "minItems": 1},
        "scenarios": {
            "anyOf": [
                {"type": "string", "description": "The name of a pack, or the path of a file."},
                {"type": "array", "items": scenario, "minItems": 1},
                *table_schemas(),
            ]
        },
        PROMPTS: {
            "type": "object",
            "patternProperties": {PROMPT_NAME: _PROMPT},
            "additionalProperties": False,
            "minProperties": 1,
        },
        "use_llm_exploratory": {"anyOf": [{"$ref": "#/$defs/Grader"}, {"type": "null"}]},
        "student": {"anyOf": [{"$ref": "#/$defs/Student"}, {"type": "null"}]},
        **settings["properties"],
    }
    return {
        "$schema": DIALECT,
        "title": "A benchmark of Socratic Bench",
        "type": "object",
        "properties": properties,
        "required": ["models"],
        "additionalProperties": False,
        "$defs": types,
    }
