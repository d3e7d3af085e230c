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
        """Return the configuration with only `known` fields and present parameters."""
        fields = dict(root.fields or {})
        if parameters := root.entry("parameters"):
            fields["parameters"] = self._without_unused(parameters, Parameters.model_fields)
        return self._without_unused(root.with_fields(fields), known)

    def scenario(self, entry: Node) -> Node:
        """Return a scenario in the present shape."""
        fields = dict(entry.fields or {})
        for old, new in (("vector", "dimension"), ("name", "title")):
            if old in fields and new not in fields:
                fields[new] = fields.pop(old)
        return self._without_unused(entry.with_fields(fields), Scenario.model_fields)

    def left_out(self, entry: Node) -> None:
        """Note a scenario whose prompt the predecessor kept elsewhere."""
        name = shown(entry.fields["id"].plain() if entry.fields else None)
        self._unused.add(entry.place, f"{name} has no prompt and is in no pack: left out")

    def default_pack_instead(self, scenarios: Node, pack: str) -> None:
        """Note that the default pack replaces the scenarios, whose prompts are all elsewhere."""
        self._unused.add(scenarios.place, f"none of them can be asked: {pack} is asked instead")

    def model(self, entry: Node) -> Node:
        """Return a model in the present shape: with a provider and a price for a million tokens."""
        fields = dict(entry.fields or {})
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
