"""Changes of a configuration on the spot: `--set repeats=1`, `--model`, `--scenario`, `--limit`.

They are read as if the file had said so, and their mistakes name the option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

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

_VARIABLE: Final = re.compile(r"\$\{((?:(?!:-)[^{}])*)(?::-([^{}]*))?\}")
"""`${NAME}`, or `${NAME:-text}` with the text for a variable that is not set."""

_WITH_VARIABLES: Final = ("name", "notes", "occasion")
_OF_A_MODEL: Final = ("id", "name", "base_url")
"""The fields in which `${NAME}` stands for a variable. A prompt may hold a dollar sign."""

_ROLES: Final = ("use_llm_exploratory", "student")

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
            mistakes.add(
                occasion.place,
                'holds a dollar sign: the shell sets a variable in double quotes, as in "$NIGHT"'
                if "occasion" in self.fields
                else "holds a dollar sign: write ${NAME} for a variable of the environment",
            )
        return root

    def kept_models(
        self, models: tuple[TutorModel, ...], mistakes: Mistakes
    ) -> tuple[TutorModel, ...]:
        """Return the chosen ones of these models; note a name that none of them has."""
        return _kept(
            models,
            self.models,
            lambda each: (each.id, each.own_id, each.display_name),
            "model",
            mistakes,
        )

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
    names: Callable[[Entry], tuple[str, ...]],
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
    """Return the configuration with `${NAME}` replaced in its name, notes and occasion, and in the
    id, name and base_url of each model; any other field of a model refuses it.

    Fields in `but` stay: the command line replaces them, and the shell has read their variables.
    `variables` of None forbids them, for a configuration that came from elsewhere. What is stored
    must not hold a secret: a variable that is named like one, or that holds a model's key, is a
    mistake.
    """
    fields = dict(root.fields or {})
    reading = _Reading(variables, _key_variables(root), mistakes)
    for name in _WITH_VARIABLES:
        if name in fields and name not in but:
            read = reading.text(fields[name])
            fields.pop(name) if read is None else fields.update({name: read})
    if "models" in fields:
        fields["models"] = reading.models(fields["models"])
    for role in _ROLES:
        if role in fields:
            fields[role] = reading.role(fields[role])
    return root.with_fields(fields)


class _Reading(NamedTuple):
    """Replaces variables in nodes."""

    variables: Mapping[str, str] | None
    keys: Collection[object]
    mistakes: Mistakes

    def text(self, node: Node, but: str = "") -> Node | None:
        """Return the text with the values of variables, or None after a mistake.

        `but` is a part of the names of secrets that this text may have.
        """
        if not isinstance(node.value, str) or "$" not in node.value:
            return node
        for variable in _VARIABLE.finditer(node.value):
            problem = self._problem(*variable.groups(), but=but)
            if problem is not None:
                self.mistakes.add(node.place, f"${{{variable[1]}}} {problem}")
                return None
        values = self.variables or {}
        read = _VARIABLE.sub(lambda found: values.get(found[1]) or found[2] or "", node.value)
        return Node(node.place, read)

    def _problem(self, name: str, default: str | None, *, but: str) -> str | None:
        if self.variables is None:
            return "stands for a variable, which the command alone reads"
        if _SECRET.search(name.replace(but, "")) or name in self.keys:
            return "may be a secret, and would be stored"
        if not self.variables.get(name) and default is None:
            return "is not set in the environment"
        return None

    def models(self, node: Node) -> Node:
        """Return a list of models with their variables read."""
        if not isinstance(node.value, list):
            return node
        return Node(node.place, [self.model(each) for each in node.value])

    def role(self, node: Node) -> Node:
        """Return the grader or the student with the variables of its model read."""
        model = node.entry("model")
        if node.fields is None or model is None:
            return node
        return node.with_fields({**node.fields, "model": self.model(model)})

    def model(self, node: Node) -> Node:
        """Return a model, or its id alone, with its variables read."""
        if node.fields is None:
            return self.text(node) or node
        fields = dict(node.fields)
        for name, field_ in node.fields.items():
            if name in _OF_A_MODEL:
                # The check of a base URL finds a password in it.
                read = self.text(field_, but="URL" if name == "base_url" else "")
                fields[name] = read or field_
            elif name != "system_prompt":
                self._refuse(field_)
        return node.with_fields(fields)

    def _refuse(self, node: Node) -> None:
        value = node.value
        for each in value.values() if isinstance(value, dict) else ():
            self._refuse(each)
        for each in value if isinstance(value, list) else ():
            self._refuse(each)
        if isinstance(value, str) and (found := _VARIABLE.search(value)):
            where = f"variables stand in {', '.join(_WITH_VARIABLES)} and a model's "
            where += ", ".join(_OF_A_MODEL)
            self.mistakes.add(node.place, f"${{{found[1]}}} is not read here: {where}")


def _key_variables(root: Node) -> set[object]:
    """Return the variables that the configuration names for keys."""
    models = root.entry("models")
    entries = list(models.value) if models is not None and isinstance(models.value, list) else []
    roles = (root.at((role, "model")) for role in _ROLES)
    entries += (each for each in roles if each is not None)
    named = (entry.at(("options", KEY_OPTION)) for entry in entries)
    return {node.value for node in named if node is not None and isinstance(node.value, str)}
