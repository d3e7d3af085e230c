"""The models of a configuration, its grader, its student, and their prompts.

A prompt may stand in a file beside the configuration: `system_prompt: {file: tutor.txt}`. Its text
becomes part of the plan, which then does not need the file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeVar

from socratic_bench.domain.experiment.manifest import (
    PROMPT_NAME,
    Grader,
    Student,
    TutorModel,
)
from socratic_bench.domain.scenario import LONGEST_NAME, Scenario
from socratic_bench.domain.student import unplayable
from socratic_bench.errors import BrokenPlugin, InvalidInput, UnknownProfile, UnknownProvider
from socratic_bench.invalid_values import quoted, shown
from socratic_bench.planning.config_file.documents import read_text
from socratic_bench.planning.config_file.source import Mistakes, Node, Place, storable
from socratic_bench.planning.config_file.validation import validate
from socratic_bench.planning.model_catalogue import ModelCatalogue
from socratic_bench.providers.built_in import REFERENCE_STUDENTS
from socratic_bench.providers.key_variables import KEY_OPTION, take_key_variable
from socratic_bench.providers.options import LABEL
from socratic_bench.providers.registry import is_reference
from socratic_bench.scoring.graded_profile import SUFFIX
from socratic_bench.scoring.profile import CANONICAL, SAME_RULER
from socratic_bench.scoring.profiles import needs_grade, profile_named
from socratic_bench.scoring.weighted_profile import is_weighted, stored_profile

SYSTEM_PROMPT: Final = "system_prompt"
PROMPTS: Final = "prompts"

LARGEST_PROMPT: Final = 100_000
"""Bytes of the file of a prompt at most."""

_FORM: Final = f"`{SYSTEM_PROMPT}: {{file: prompts/tutor.txt}}`"


@dataclass(frozen=True, slots=True)
class PromptFiles:
    """Replaces prompts that name a file by the text of the file."""

    base_folder: Path | None
    """The folder that contains the files of all prompts; None forbids files."""

    mistakes: Mistakes

    def written_out(self, node: Node) -> Node:
        """Return a mapping with its prompt as text, or with a mistake and without the prompt."""
        prompt = node.entry(SYSTEM_PROMPT)
        if node.fields is None or prompt is None:
            return node
        fields = dict(node.fields)
        text = self.text(prompt)
        if text is None:
            del fields[SYSTEM_PROMPT]
        else:
            fields[SYSTEM_PROMPT] = text
        return node.with_fields(fields)

    def text(self, prompt: Node) -> Node | None:
        """Return a prompt as text; None after a mistake."""
        try:
            return self._text(prompt)
        except InvalidInput as error:
            self.mistakes.add(prompt.place, str(error))
            return None

    def _text(self, prompt: Node) -> Node:
        if isinstance(prompt.value, str) and prompt.value.startswith("file:"):
            raise InvalidInput(f"is the address of a file, not a prompt; write {_FORM}")
        if prompt.fields is None:
            return prompt
        file = prompt.entry("file")
        if file is None or len(prompt.fields) > 1 or not isinstance(file.value, str):
            raise InvalidInput(f"must be text, or the path of a file: {_FORM}")
        return Node(prompt.place, self._content(file.value, file.place))

    def _content(self, name: str, place: Place) -> str:
        """Return the text of the file with line feeds only, and no empty lines at its end."""
        if self.base_folder is None:
            raise InvalidInput("a file cannot be read from here: write the prompt out in its place")
        folder = self.base_folder.absolute()
        try:
            text = read_text(_below(self.base_folder, name), LARGEST_PROMPT)
        except InvalidInput as error:
            raise InvalidInput(f"{shown(name)} in {folder}: {error}") from None
        text = text.replace("\r\n", "\n").rstrip("\n")
        if not text.strip():
            raise InvalidInput(f"{quoted(name)} in {folder}: is empty")
        return storable(text, place, self.mistakes)


def _below(folder: Path, name: str) -> Path:
    """Return the path of a file below the folder. Raises InvalidInput for any other path."""
    try:
        path = (folder / name).resolve()
        is_below = path.is_relative_to(folder.resolve())
        is_special = path.exists() and not (path.is_file() or path.is_dir())
    except (OSError, RuntimeError, ValueError):  # a circle of links, or NUL
        raise InvalidInput("is not a path") from None
    if not is_below:
        raise InvalidInput("is not below the folder of the configuration")
    if is_special:
        raise InvalidInput("is a device or a pipe, not a file")
    return path


FINGERPRINT = "sha256"
"""The option of a model with the hash of its files."""


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """Reads the `models` of one configuration."""

    base_folder: Path | None
    catalogue: ModelCatalogue
    mistakes: Mistakes
    prompts: PromptFiles
    key_variables: dict[str, str] = field(default_factory=dict)
    """The environment variables that the configuration names for keys, by model id. Plans leave
    them out."""

    def read(self, root: Node) -> tuple[TutorModel, ...]:
        """Return the models of the configuration; note mistakes and leave out wrong models."""
        node = root.entry("models")
        if node is None:
            self.mistakes.add(root.place_of(("models",)), "is missing")
            return ()
        if not isinstance(node.value, list):
            problem = f"must be a list of models, not {shown(node.plain())}"
            self.mistakes.add(node.place, problem)
            return ()
        if not node.value:
            self.mistakes.add(node.place, "must name at least one model")
        models: dict[str, TutorModel] = {}
        shown_as: dict[str, str] = {}
        prompts = self._prompts(root)
        for entry in map(self._mapping, node.value):
            model = entry and self.model(entry)
            if not entry or not model:
                continue
            if model.id in models or any(each.own_id == model.id for each in models.values()):
                problem = f"model {shown(model.id)} is listed more than once"
                self.mistakes.add(entry.place_of(("id",)), problem)
            models |= self._under_each(model, prompts, entry)
            # Tables show the name alone: two rows of one name cannot be told apart.
            twin = shown_as.setdefault(_as_seen(model.display_name), model.id)
            if twin != model.id:
                problem = (
                    f"models {shown(twin)} and {shown(model.id)} have one name, "
                    f"{shown(model.display_name)}: give each its own"
                )
                self.mistakes.add(entry.place_of(("name",)), problem)
        return tuple(models.values())

    def _prompts(self, root: Node) -> dict[str, str]:
        """Return the text of each of `prompts`, by name; note mistakes and leave out wrong ones."""
        node = root.entry(PROMPTS)
        if node is None:
            return {}
        if not node.fields:
            problem = f"must be a mapping of names to prompts, not {shown(node.plain())}"
            self.mistakes.add(node.place, problem)
            return {}
        if (other := root.entry(SYSTEM_PROMPT)) is not None:
            self.mistakes.add(other.place, f"is no prompt of a model: make it one of `{PROMPTS}`")
        prompts: dict[str, str] = {}
        for name, prompt in node.fields.items():
            text = self.prompts.text(prompt)
            if not re.fullmatch(PROMPT_NAME, name):
                problem = "the name of a prompt has letters, digits, dots and hyphens alone"
                self.mistakes.add(prompt.place, problem)
            elif text is not None and not isinstance(text.value, str):
                problem = f"must be text, not {shown(text.plain())}"
                self.mistakes.add(prompt.place, problem)
            elif text is not None and text.value in prompts.values():
                self.mistakes.add(prompt.place, "has the words of another prompt")
            elif text is not None:
                prompts[name] = str(text.value)
        return prompts

    def _under_each(
        self, model: TutorModel, prompts: Mapping[str, str], entry: Node
    ) -> dict[str, TutorModel]:
        """Return a model by its id, or as a model of its own under each of the prompts."""
        if not prompts:
            return {model.id: model}
        if model.system_prompt is not None:
            problem = f"is a prompt beside those of `{PROMPTS}`: leave out one of them"
            self.mistakes.add(entry.place_of((SYSTEM_PROMPT,)), problem)
        if model.provider == "replay":
            self.mistakes.add(entry.place, "has recorded answers, which heed no prompt")
        under = [model.under(name, text) for name, text in prompts.items()]
        if len(max(under, key=lambda each: len(each.id)).id) > LONGEST_NAME:
            problem = f"is longer than {LONGEST_NAME} characters with the name of a prompt"
            self.mistakes.add(entry.place_of(("id",)), problem)
        key_variable = self.key_variables.pop(model.id, None)
        if key_variable is not None:
            self.key_variables.update((each.id, key_variable) for each in under)
        return {each.id: each for each in under}

    def _mapping(self, entry: Node) -> Node | None:
        if isinstance(entry.value, str):
            return entry.with_fields({"id": entry})
        if entry.fields is None:
            problem = f"must be `provider/name` or a mapping with `id`, not {shown(entry.plain())}"
            self.mistakes.add(entry.place, problem)
            return None
        return entry

    def model(self, entry: Node) -> TutorModel | None:
        """Return one model, checked; None after a mistake."""
        if (named := entry.entry("prompt")) is not None:
            self.mistakes.add(named.place, f"unknown field; did you mean `{SYSTEM_PROMPT}`?")
            return None
        model = validate(TutorModel, self.prompts.written_out(entry), self.mistakes)
        if model is None:
            return None
        try:
            model, key_variable = take_key_variable(model)
            self.catalogue.check(model, self.base_folder, key_variable)
            fingerprint = self.catalogue.fingerprint(model, self.base_folder)
        except UnknownProvider as error:
            self.mistakes.add(entry.place_of(("id",)), str(error))
        except InvalidInput as error:
            self.mistakes.add(entry.place, str(error))
        else:
            if key_variable is not None:
                self.key_variables[model.id] = key_variable
            return model if fingerprint is None else self._bound(model, fingerprint, entry)
        return None

    def _bound(self, model: TutorModel, fingerprint: str, entry: Node) -> TutorModel:
        """Return the model, bound to the present contents of its files."""
        written = model.options.get(FINGERPRINT, fingerprint)
        if written != fingerprint:
            place = entry.place_of(("options", FINGERPRINT))
            problem = f"the file's hash is {fingerprint}, not {shown(written)}: it has changed"
            self.mistakes.add(place, problem)
        options = {**model.options, FINGERPRINT: fingerprint}
        return model.model_copy(update={"options": options})


def _as_seen(name: str) -> str:
    """Return a name as a reader of a table tells it from others: by its visible letters."""
    letters = unicodedata.normalize("NFKC", name)
    seen = "".join(each for each in letters if unicodedata.category(each) != "Cf")
    return " ".join(seen.split()).casefold()


GRADER: Final = "use_llm_exploratory"
STUDENT: Final = "student"

Role = TypeVar("Role", Grader, Student)


@dataclass(frozen=True, slots=True)
class RoleSelection:
    """Reads the grader and the student's model, which are checked as models under test are."""

    selection: ModelSelection
    mistakes: Mistakes

    def grader(self, root: Node, models: Sequence[TutorModel]) -> Grader | None:
        """Return the grader; None without one, and after a mistake."""
        return self._read(root, GRADER, Grader, models, _cannot_grade)

    def student(
        self, root: Node, models: Sequence[TutorModel], scenarios: Sequence[Scenario]
    ) -> Student | None:
        """Return the model that plays the student; None without one, and after a mistake."""
        student = self._read(root, STUDENT, Student, models, _cannot_play)
        if student is None:
            return None
        recorded = [each.id for each in models if each.provider == "replay"]
        why = unplayable(scenarios) if scenarios else None
        if why is None and recorded:
            why = f"{recorded[0]} has recorded answers, to other words than the model's"
        if why is not None:
            self.mistakes.add(root.place_of((STUDENT,)), why)
        return student

    def _read(
        self,
        root: Node,
        name: str,
        kind: type[Role],
        others: Sequence[TutorModel],
        unfit: Callable[[TutorModel], str | None],
    ) -> Role | None:
        node = root.entry(name)
        if node is None or node.value is None:
            return None
        entry = node.entry("model")
        if node.fields is not None and entry is not None and isinstance(entry.value, str):
            entry = entry.with_fields({"id": entry})
            node = node.with_fields({**node.fields, "model": entry})
        role = validate(kind, node, self.mistakes)
        if role is None or entry is None:
            return None
        if (problem := unfit(role.model)) is not None:
            self.mistakes.add(entry.place, problem)
            return None
        key_variable = role.model.options.get(KEY_OPTION)
        key_variables = self.selection.key_variables
        is_known = any(each.id == role.model.id for each in others)
        # The command knows the variables of keys by the ids of models.
        if is_known and key_variable != key_variables.get(role.model.id):
            problem = f"model {role.model.id} has another {KEY_OPTION} among the models"
            self.mistakes.add(entry.place, problem)
            return None
        model = self.selection.model(entry)
        return None if model is None else role.model_copy(update={"model": model})


def _cannot_grade(model: TutorModel) -> str | None:
    if is_reference(model):
        return "a reference tutor answers from fixed texts, and cannot grade"
    return None


def _cannot_play(model: TutorModel) -> str | None:
    name = model.name_at_provider.partition(LABEL)[0]
    if is_reference(model) and name not in REFERENCE_STUDENTS:
        return f"{model.id} answers as a tutor; reference/student plays a student"
    return None


LENGTH: Final = "length"
SAME: Final = "same ruler"
Length = Literal["provider", "same ruler"]
"""Who counts the length of answers: their providers, or one ruler for all models."""


def graded_name(profile: str) -> str:
    """Return the name of the graded profile of a profile."""
    return profile if profile.endswith(SUFFIX) else profile + SUFFIX


def check_profile(root: Node, mistakes: Mistakes) -> None:
    """Note a profile that is not known, or that does not fit the presence of a grader."""
    profile, grader = root.entry("profile"), root.entry(GRADER)
    name = profile.value if profile is not None else CANONICAL
    if not isinstance(name, str):
        return
    has_grader = grader is not None and grader.value is not None
    length = root.entry(LENGTH)
    if length is not None and length.value == SAME:
        if has_grader or name not in (CANONICAL, SAME_RULER):
            problem = f"{SAME} is for {CANONICAL} without a grader: remove one of them"
            mistakes.add(length.place, problem)
        return
    if is_weighted(name):
        problem = f"has other weights: write profile: {stored_profile(name)}, and `weights`"
        mistakes.add(root.place_of(("profile",)), problem)
        return
    try:
        profile_named(name)
        if has_grader:
            profile_named(graded_name(name))
        elif needs_grade(name):
            problem = f"needs a model that grades: {GRADER}: {{model: provider/name}}"
            mistakes.add(root.place_of(("profile",)), problem)
    except (UnknownProfile, BrokenPlugin) as error:
        mistakes.add(root.place_of(("profile",)), str(error))
