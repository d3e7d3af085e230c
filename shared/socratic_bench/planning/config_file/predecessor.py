"""Translates the configuration of the benchmark's predecessor, field by field.

Its models had a `model_id` of Amazon Bedrock and prices per thousand tokens. Its scenarios had a
`vector` for the dimension and a `name` for the title. Each field keeps its place, so an entry may
have fields of both versions, and mistakes name the fields and lines of the old file.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from socratic_bench.domain.experiment.manifest import Parameters, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.invalid_values import close_match, shown
from socratic_bench.planning.config_file.scenario_selection import DEFAULT_PACK, pack_by_id
from socratic_bench.planning.config_file.source import Mistakes, Node
from socratic_bench.planning.config_file.validation import validate

NOT_USED = "is not used by this version"


class _PricePerThousand(BaseModel):
    """Prices in USD for a thousand tokens."""

    model_config = ConfigDict(frozen=True)

    cost_per_1k_input: Annotated[Decimal, Field(ge=0, le=1000)]
    cost_per_1k_output: Annotated[Decimal, Field(ge=0, le=1000)]

    def per_million(self) -> dict[str, JsonValue]:
        """Return the fields of a `Price`, without rounding."""
        return {
            "input_per_million": f"{(self.cost_per_1k_input * 1000).normalize():f}",
            "output_per_million": f"{(self.cost_per_1k_output * 1000).normalize():f}",
        }


_PRICES = frozenset(_PricePerThousand.model_fields)


def is_predecessor(root: Node) -> bool:
    """Tell whether a configuration has the predecessor's shape: a model with a `model_id`."""
    models = root.entry("models")
    entries = models.value if models and isinstance(models.value, list) else []
    return any(entry.entry("model_id") for entry in entries)


class Predecessor:
    """Translates one configuration, and notes in `unused` the fields that it leaves out."""

    def __init__(self, providers: Collection[str], mistakes: Mistakes, unused: Mistakes) -> None:
        self._providers = providers
        self._mistakes = mistakes
        self._unused = unused

    def document(self, root: Node, known: Collection[str]) -> Node:
        """Return the configuration with only `known` fields, and present models and parameters."""
        fields = dict(root.fields or {})
        if parameters := root.entry("parameters"):
            fields["parameters"] = self._without_unused(parameters, Parameters.model_fields)
        if (models := root.entry("models")) and isinstance(models.value, list):
            fields["models"] = Node(models.place, list(map(self._model, models.value)))
        return self._without_unused(root.with_fields(fields), known)

    def scenarios(self, listed: Node) -> Node:
        """Return a list of scenarios in the present shape, or else the default pack.

        The predecessor kept its scenarios elsewhere: one without a prompt is left out, with a note.
        """
        if not isinstance(listed.value, list):
            return listed
        bare = [entry for entry in listed.value if _is_bare_name(entry)]
        for entry in bare:
            name = shown(entry.fields["id"].plain() if entry.fields else None)
            self._unused.add(entry.place, f"{name} has no prompt and is in no pack: left out")
        if bare and len(bare) == len(listed.value):
            # With a note, since other prompts must not pass for the old ones.
            problem = f"none of them can be asked: {DEFAULT_PACK} is asked instead"
            self._unused.add(listed.place, problem)
            return Node(listed.place, DEFAULT_PACK)
        kept = [self._scenario(entry) for entry in listed.value if not _is_bare_name(entry)]
        return Node(listed.place, kept)

    def _scenario(self, entry: Node) -> Node:
        if entry.fields is None:
            return entry
        fields = dict(entry.fields)
        for old, new in (("vector", "dimension"), ("name", "title")):
            if old in fields and new not in fields:
                fields[new] = fields.pop(old)
        return self._without_unused(entry.with_fields(fields), Scenario.model_fields)

    def _model(self, entry: Node) -> Node:
        """Return a model in the present shape: with a provider and a price for a million tokens."""
        if entry.fields is None:
            return entry
        fields = dict(entry.fields)
        model_id = fields.pop("model_id", None)
        if model_id and "id" in fields:
            self._mistakes.add(fields["id"].place, "is given twice: as `id` and as `model_id`")
        elif model_id:
            fields["id"] = self._with_provider(model_id)
        prices = {name: fields.pop(name) for name in _PRICES & fields.keys()}
        if prices and "price" in fields:
            place = fields["price"].place
            self._mistakes.add(place, "is given twice: for a million tokens and for a thousand")
        elif prices:
            old = validate(_PricePerThousand, entry.with_fields(prices), self._mistakes)
            if old:
                fields["price"] = Node.of(old.per_million(), entry.place)
        return self._without_unused(entry.with_fields(fields), TutorModel.model_fields)

    def _with_provider(self, model_id: Node) -> Node:
        """Return an id with its provider: Amazon Bedrock, unless the id names one."""
        name = model_id.value
        if not isinstance(name, str) or not name or name.split("/")[0] in self._providers:
            return model_id
        return Node(model_id.place, f"bedrock/{name}")

    def _without_unused(self, node: Node, known: Collection[str]) -> Node:
        """Leave out unknown fields, but keep probable slips, which become mistakes later."""
        if node.fields is None:
            return node
        kept: dict[str, Node] = {}
        for name, entry in node.fields.items():
            if name in known:
                kept[name] = entry
            elif not self._unused.is_full:
                if close_match(name, known):
                    kept[name] = entry
                else:
                    self._unused.add(entry.place, NOT_USED)
        return node.with_fields(kept)


def _is_bare_name(entry: Node) -> bool:
    """Whether the entry has no prompt and names a scenario that the pack does not have."""
    fields = entry.fields or {}
    name = fields["id"].value if "id" in fields else None
    return isinstance(name, str) and "prompt" not in fields and name not in pack_by_id()
