"""The API's shapes as TypeScript types, from its OpenAPI document."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

import httpx

from socratic_api.bootstrap import build_app
from socratic_api.settings import ApiSettings
from socratic_bench.adapters.stores.memory.store import MemoryStore

JSON = "application/json"
HEAD = """\
// Generated from the API's OpenAPI document; a test compares the two. To write it again:
//   python -m tests.architecture.api_types > services/api/dashboard/src/lib/api_types.ts

"""
_WORDS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_METHODS = (
    ("get", "GetAnswers"),
    ("post", "PostAnswers"),
    ("patch", "PatchAnswers"),
    ("delete", "DeleteAnswers"),
)
_WIDTH = 100
"""Characters of a line, as the format of the sources allows."""

_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")

Schema = Mapping[str, Any]


MOST_CHARACTERS = 100
"""The most characters of a line."""


def api_types() -> str:
    """The types of this version's API."""
    return typescript(asyncio.run(openapi_document()))


async def openapi_document() -> dict[str, Any]:
    """The document that the API serves; an empty store is enough for it."""
    app = build_app(MemoryStore(), ApiSettings())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1"
    ) as client:
        document: dict[str, Any] = (await client.get("/openapi.json")).json()
    return document


def typescript(document: Schema) -> str:
    """A type for each schema, and for each method one that gives the JSON of every address.

    Descriptions are left out: a better sentence in Python changes no type.
    """
    declared = [
        _declaration(name, schema)
        for name, schema in sorted(document["components"]["schemas"].items())
    ]
    for method, name in _METHODS:
        fields = {
            path: answer
            for path, methods in sorted(document["paths"].items())
            if method in methods and (answer := _answer_of(methods[method]))
        }
        declared.append(_interface(name, fields))
    return HEAD + "\n".join(declared)


def _answer_of(operation: Schema) -> str | None:
    [good] = [each for status, each in operation["responses"].items() if status.startswith("2")]
    content = good["content"]
    return type_of(content[JSON]["schema"]) if JSON in content else None


def _declaration(name: str, schema: Schema) -> str:
    if "properties" not in schema:
        return _alias(name, type_of(schema))
    required = schema.get("required", ())
    fields = {
        field if field in required else f"{field}?": type_of(each)
        for field, each in schema["properties"].items()
    }
    more = schema.get("additionalProperties", False)
    if more is not False:
        # TypeScript wants the type of further keys to include those of the named ones.
        kinds = [*fields.values(), "unknown" if more is True else type_of(more)]
        every = {kind: None for each in kinds for kind in each.split(" | ")}
        if "string" in every:
            every.pop("Status", None)  # a string, too
        fields["[name: string]"] = " | ".join(every)
    return _interface(name, fields)


def _alias(name: str, type_: str) -> str:
    line = f"export type {name} = {type_};\n"
    if len(line) <= MOST_CHARACTERS:
        return line
    # The form that Prettier gives a union which no line holds.
    kinds = "".join(f"\n  | {kind}" for kind in type_.split(" | "))
    return f"export type {name} ={kinds};\n"


def _interface(name: str, fields: Mapping[str, str]) -> str:
    lines = "".join(_field(_key(field), type_) for field, type_ in fields.items())
    return f"export interface {name} {{\n{lines}}}\n"


def _field(name: str, type_: str) -> str:
    line = f"  {name}: {type_};\n"
    if len(line) <= _WIDTH + 1:
        return line
    choices = "".join(f"\n    | {choice}" for choice in type_.split(" | "))
    return f"  {name}:{choices};\n"


def type_of(schema: Schema) -> str:
    """A schema as a TypeScript type. Raises ValueError for a kind that no schema of ours has."""
    known = _reference_or_choice(schema) or _structure(schema) or _WORDS.get(schema.get("type", ""))
    if known is None and schema.keys() - {"title", "description", "default"}:
        raise ValueError(f"no type is known for {json.dumps(schema)}")
    return known or "unknown"


def _reference_or_choice(schema: Schema) -> str | None:
    match schema:
        case {"$ref": reference}:
            return str(reference).rpartition("/")[2]
        case {"anyOf": kinds} | {"oneOf": kinds}:
            return " | ".join(type_of(each) for each in kinds)
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(map(json.dumps, values))
    return None


def _structure(schema: Schema) -> str | None:
    match schema:
        case {"type": "array", "prefixItems": items}:
            return f"[{', '.join(map(type_of, items))}]"
        case {"type": "array", "items": items}:
            inner = type_of(items)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case {"type": "object", "additionalProperties": bool()}:
            return "Record<string, unknown>"
        case {"type": "object", "additionalProperties": values}:
            return f"Record<string, {type_of(values)}>"
    return None


def _key(field: str) -> str:
    name, _, _ = field.partition("?")
    return field if field.startswith("[") or _IDENTIFIER.fullmatch(name) else json.dumps(field)


if __name__ == "__main__":
    sys.stdout.write(api_types())
