"""The models of a configuration."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import InvalidInput, UnknownProvider
from socratic_bench.invalid_values import shown
from socratic_bench.planning.config_file.predecessor import Predecessor
from socratic_bench.planning.config_file.prompt_files import PromptFiles
from socratic_bench.planning.config_file.source import Mistakes, Node
from socratic_bench.planning.config_file.validation import validate
from socratic_bench.planning.model_catalogue import ModelCatalogue
from socratic_bench.providers.key_variables import take_key_variable

FINGERPRINT = "sha256"
"""The option of a model with the hash of its files."""


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """Reads the `models` of one configuration."""

    base_folder: Path | None
    catalogue: ModelCatalogue
    mistakes: Mistakes
    predecessor: Predecessor | None
    """The translation of the predecessor's entries, for a configuration of its shape."""

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
        for entry in map(self._mapping, node.value):
            model = entry and self.model(entry)
            if not entry or not model:
                continue
            if model.id in models:
                problem = f"model {shown(model.id)} is listed more than once"
                self.mistakes.add(entry.place_of(("id",)), problem)
            models[model.id] = model
            # Tables show the name alone: two rows of one name cannot be told apart.
            twin = shown_as.setdefault(_as_seen(model.display_name), model.id)
            if twin != model.id:
                problem = (
                    f"models {shown(twin)} and {shown(model.id)} have one name, "
                    f"{shown(model.display_name)}: give each its own"
                )
                self.mistakes.add(entry.place_of(("name",)), problem)
        return tuple(models.values())

    def _mapping(self, entry: Node) -> Node | None:
        if isinstance(entry.value, str):
            return entry.with_fields({"id": entry})
        if entry.fields is None:
            problem = f"must be `provider/name` or a mapping with `id`, not {shown(entry.plain())}"
            self.mistakes.add(entry.place, problem)
            return None
        return self.predecessor.model(entry) if self.predecessor else entry

    def model(self, entry: Node) -> TutorModel | None:
        """Return one model, checked; None after a mistake."""
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
