"""The addresses that the operator of the services must permit for a plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from socratic_bench.providers.endpoints.endpoint import SETTING
from socratic_bench.providers.registry import destination

if TYPE_CHECKING:
    from socratic_bench.planning.config_file.config import BenchmarkConfig


def endpoints_to_list(config: BenchmarkConfig) -> list[str]:
    """Return a sentence for each address of the plan that is not a provider's own.

    A server on the runner's machine counts too, since a plan comes from elsewhere.
    """
    entries: dict[str, dict[str, Any]] = {}
    for model in config.manifest.called_models:
        where = destination(model)
        if where is None or (where.own and (where.signed or where.usual_key)):
            continue
        entry: dict[str, Any] = {"origin": where.origin}
        if where.signed:
            entry["aws"] = True
        elif variable := config.key_variables.get(model.id):
            entry["key_variable"] = variable
        elif model.endpoint:
            entry["key_variable"] = "…"
        entries.setdefault(json.dumps([entry, model.endpoint]), {model.endpoint or "NAME": entry})
    return [
        f"the runner calls {_origin(entry)} only if its operator lists it: "
        f"{SETTING}='{json.dumps(entry, ensure_ascii=False)}'"
        for entry in entries.values()
    ]


def _origin(entry: dict[str, Any]) -> str:
    return str(next(iter(entry.values()))["origin"])
