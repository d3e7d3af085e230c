"""The grader of a configuration: `use_llm_exploratory`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from socratic_bench.domain.experiment.manifest import Grader, TutorModel
from socratic_bench.errors import BrokenPlugin, UnknownProfile
from socratic_bench.planning.config_file.source import Mistakes, Node
from socratic_bench.planning.config_file.validation import validate
from socratic_bench.planning.model_selection import ModelSelection
from socratic_bench.providers.key_variables import KEY_OPTION
from socratic_bench.providers.registry import is_reference
from socratic_bench.scoring.graded_profile import SUFFIX
from socratic_bench.scoring.profile import CANONICAL, SAME_RULER
from socratic_bench.scoring.profiles import needs_grade, profile_named

GRADER: Final = "use_llm_exploratory"


@dataclass(frozen=True, slots=True)
class GraderSelection:
    """Reads the grader, which is checked as a model under test is."""

    selection: ModelSelection
    mistakes: Mistakes

    def read(self, root: Node, models: Sequence[TutorModel]) -> Grader | None:
        """Return the grader; None without one, and after a mistake."""
        node = root.entry(GRADER)
        if node is None or node.value is None:
            return None
        entry = node.entry("model")
        if node.fields is not None and entry is not None and isinstance(entry.value, str):
            entry = entry.with_fields({"id": entry})
            node = node.with_fields({**node.fields, "model": entry})
        grader = validate(Grader, node, self.mistakes)
        if grader is None or entry is None:
            return None
        if is_reference(grader.model):
            problem = "a reference tutor answers from fixed texts, and cannot grade"
            self.mistakes.add(entry.place, problem)
            return None
        key_variable = grader.model.options.get(KEY_OPTION)
        key_variables = self.selection.key_variables
        is_tutor = any(each.id == grader.model.id for each in models)
        # The command knows the variables of keys by the ids of models.
        if is_tutor and key_variable != key_variables.get(grader.model.id):
            problem = f"model {grader.model.id} has another {KEY_OPTION} among the models"
            self.mistakes.add(entry.place, problem)
            return None
        model = self.selection.model(entry)
        if model is None:
            return None
        return Grader(model=model, max_tokens=grader.max_tokens, rubric=grader.rubric)


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
    try:
        profile_named(name)
        if has_grader:
            profile_named(graded_name(name))
        elif needs_grade(name):
            problem = f"needs a model that grades: {GRADER}: {{model: provider/name}}"
            mistakes.add(root.place_of(("profile",)), problem)
    except (UnknownProfile, BrokenPlugin) as error:
        mistakes.add(root.place_of(("profile",)), str(error))
