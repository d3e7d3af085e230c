"""The JSON schema of a configuration, by which editors complete and underline its fields.

It follows from the types that read a configuration. It is looser than reading: only reading knows
the providers, the packs and the files.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import models_json_schema

from socratic_bench.domain.experiment.manifest import Grader, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.planning.config_file.config import SETTINGS

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
    kinds = (SETTINGS, TutorModel, Scenario, Grader)
    _, found = models_json_schema([(kind, "validation") for kind in kinds])
    types: dict[str, Any] = found["$defs"]
    settings = types.pop(SETTINGS.__name__)
    settings["properties"]["system_prompt"] = _PROMPT
    none = {"anyOf": [*_PROMPT["anyOf"], {"type": "null"}]}
    types["TutorModel"]["properties"]["system_prompt"] = _PROMPT | none
    named = {"type": "string", "description": "`provider/name`"}
    model = {"anyOf": [named, {"$ref": "#/$defs/TutorModel"}]}
    types["Grader"]["properties"]["model"] = model
    # A scenario of the pack is named by its id, alone or with other fields.
    types["Scenario"]["required"] = ["id"]
    scenario = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Scenario"}]}
    properties = {
        "models": {"type": "array", "items": model, "minItems": 1},
        "scenarios": {
            "anyOf": [
                {"type": "string", "description": "The name of a pack, or the path of a file."},
                {"type": "array", "items": scenario, "minItems": 1},
            ]
        },
        "use_llm_exploratory": {"anyOf": [{"$ref": "#/$defs/Grader"}, {"type": "null"}]},
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
