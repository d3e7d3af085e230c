"""Changes of a configuration on the spot: `--set repeats=1`, `--model`, `--scenario`, `--limit`.

They are read as if the file had said so, and their mistakes name the option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.scenario import LONGEST_NAME, Scenario
from socratic_bench.invalid_values import likely, shown
from socratic_bench.planning.config_file.documents import parse_yaml
from socratic_bench.planning.config_file.source import Mistakes, Node, Place, Unreadable
from socratic_bench.providers.key_variables import KEY_OPTION

Entry = TypeVar("Entry", TutorModel, Scenario)

_WITH_OPTIONS_OF_THEIR_OWN: Final = {"models": "--model", "scenarios": "--scenario"}
_TEXTS: Final = frozenset({"name", "notes", "occasion", "profile", "system_prompt"})
"""Fields whose values are texts, whatever they look like: a commit may be `12e45`."""

_VARIABLE: Final = re.compile(r"\$\{([^{}]*)\}")
_WITH_VARIABLES: Final = ("name", "notes", "occasion")
"""The fields in which `${NAME}` stands for a variable. A prompt may hold a dollar sign."""

_SECRET: Final = re.compile(
    r"KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH|COOKIE|SESSION|DSN|URL|_PAT$|^PAT$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What to read in place of what a configuration says."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Per field, or path such as `parameters.temperature`: its value as YAML."""

    models: Sequence[str] = ()
    """The ids or names of the models to keep; none: all."""

    scenarios: Sequence[str] = ()
    """The ids or titles of the scenarios to keep; none: all."""

    most_scenarios: int | None = None
    """How many of them to keep, the first ones; None: all."""

    def __bool__(self) -> bool:
        return self != Changes()

    def applied(self, root: Node, mistakes: Mistakes) -> Node:
        """Return the configuration with the changed fields, or with a mistake for a wrong one."""
        for path, text in self.fields.items():
            place = Place(f"--set {path}")
            first, *rest = path.split(".")
            if option := _WITH_OPTIONS_OF_THEIR_OWN.get(first):
                mistakes.add(place, f"cannot be set: {option} chooses among them")
            elif not all((first, *rest)):
                mistakes.add(place, "must be the name of a field, such as repeats")
            else:
                root = _with(root, (first, *rest), _value(first, text, place, mistakes), mistakes)
        occasion = root.entry("occasion")
        if occasion is not None and "$" in str(occasion.value):
            problem = "holds a dollar sign: write ${NAME} for a variable of the environment"
            mistakes.add(occasion.place, problem)
        return root

    def kept_models(
        self, models: tuple[TutorModel, ...], mistakes: Mistakes
    ) -> tuple[TutorModel, ...]:
        """Return the chosen ones of these models; note a name that none of them has."""
        return _kept(models, self.models, lambda each: (each.id, each.name), "model", mistakes)

    def kept_scenarios(
        self, scenarios: tuple[Scenario, ...], mistakes: Mistakes
    ) -> tuple[Scenario, ...]:
        """Return the first of the chosen ones; note a name that none of these scenarios has."""
        kept = _kept(
            scenarios, self.scenarios, lambda each: (each.id, each.title), "scenario", mistakes
        )
        return kept[: self.most_scenarios]

    def name_of_part(self, name: str | None, part: str) -> str | None:
        """Return the name of an experiment with a part of the plan, unless `--set` gives one.

        By the whole plan's name, it would pass for the newest experiment of that name.
        """
        if name is None or "name" in self.fields:
            return name
        suffix = f" ({part})"
        return name[: LONGEST_NAME - len(suffix)] + suffix


def part_kept(counts: Iterable[tuple[int, int, str]]) -> str | None:
    """Say what is left, `1 of 3 models, 2 of 15 scenarios`, of counts of it, of all, and of what.

    Returns None if all of it is left.
    """
    return (
        ", ".join(f"{left} of {all_} {what}" for left, all_, what in counts if left < all_) or None
    )


def _kept(
    entries: tuple[Entry, ...],
    wanted: Sequence[str],
    names: Callable[[Entry], tuple[str, str]],
    what: str,
    mistakes: Mistakes,
) -> tuple[Entry, ...]:
    """Return the entries of which one of the names is wanted, in their order."""
    if not wanted or not entries:
        return entries
    known = [name for each in entries for name in dict.fromkeys(names(each)) if name]
    for name in wanted:
        if name not in known:
            problem = f"there is no {what} {shown(name)}; {likely(name, known)}"
            mistakes.add(Place(f"--{what}"), problem)
    return tuple(each for each in entries if not set(names(each)).isdisjoint(wanted))


def _value(field: str, text: str, place: Place, mistakes: Mistakes) -> Node:
    if field in _TEXTS or not text.strip():
        return Node(place, text)
    try:
        return _at(parse_yaml(text, place.file, mistakes), place)
    except Unreadable as error:
        mistakes.add(place, error.problem)
        return Node(place, None)


def _at(node: Node, place: Place) -> Node:
    """Return a value whose every part is at `place`."""
    return Node.of(node.plain(), place)


def _with(root: Node, path: Sequence[str], value: Node, mistakes: Mistakes) -> Node:
    """Return `root` with a value at a path of names."""
    first, *rest = path
    fields = dict(root.fields or {})
    if rest:
        inner = fields.get(first, Node(value.place, {}))
        if inner.fields is None:
            mistakes.add(value.place, f"{first} is {shown(inner.plain())}, which has no fields")
            return root
        value = _with(inner, rest, value, mistakes)
    return root.with_fields({**fields, first: value})


def with_variables(
    root: Node,
    variables: Mapping[str, str] | None,
    mistakes: Mistakes,
    but: Collection[str] = (),
) -> Node:
    """Return the configuration with `${NAME}` replaced in its name, notes and occasion.

    Fields in `but` stay: the command line replaces them, and the shell has read their variables.
    `variables` of None forbids them, for a configuration that came from elsewhere. What is stored
    must not hold a secret: a variable that is named like one, or that holds a model's key, is a
    mistake.
    """
    fields = dict(root.fields or {})
    keys = _key_variables(root)
    for name in _WITH_VARIABLES:
        node = fields.get(name)
        if node is None or name in but or "$" not in str(node.value):
            continue
        text, problem = _replaced(str(node.value), variables, keys)
        if problem is not None:
            mistakes.add(node.place, problem)
            del fields[name]
        else:
            fields[name] = Node(node.place, text)
    return root.with_fields(fields)


def _key_variables(root: Node) -> set[object]:
    """Return the variables that the configuration names for keys."""
    models = root.entry("models")
    entries = list(models.value) if models is not None and isinstance(models.value, list) else []
    roles = (root.at((role, "model")) for role in ("use_llm_exploratory", "student"))
    entries += (each for each in roles if each is not None)
    named = (entry.at(("options", KEY_OPTION)) for entry in entries)
    return {node.value for node in named if node is not None and isinstance(node.value, str)}


def _replaced(
    text: str, variables: Mapping[str, str] | None, keys: Collection[object]
) -> tuple[str, str | None]:
    """Return the text with the values of variables, and what is wrong with one of them."""
    names: Sequence[str] = _VARIABLE.findall(text)
    for name in names:
        if variables is None:
            return text, f"${{{name}}} stands for a variable, which the command alone reads"
        if _SECRET.search(name) or name in keys:
            return text, f"${{{name}}} may be a secret, and would be stored"
        if not variables.get(name):
            return text, f"${{{name}}} is not set in the environment"
    values = variables or {}
    return _VARIABLE.sub(lambda match: values[match[1]], text), None
