"""The dashboard's types are the ones that the API's OpenAPI document gives."""

from pathlib import Path

import pytest

from tests.architecture.api_types import api_types, type_of

ROOT = Path(__file__).parents[2]
TYPES = ROOT / "services/api/dashboard/src/lib/api_types.ts"


def test_the_types_of_the_api_are_up_to_date():
    assert TYPES.read_text() == api_types(), (
        f"python -m tests.architecture.api_types > {TYPES.relative_to(ROOT)}"
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "number | null"),
        (
            {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
            "(number | string)[]",
        ),
        (
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}]},
            "[number, number]",
        ),
        (
            {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/A"}},
            "Record<string, A>",
        ),
        ({"enum": ["ok", "empty"]}, '"ok" | "empty"'),
        ({"title": "Anything"}, "unknown"),
    ],
)
def test_a_schema_has_its_type(schema, expected):
    assert type_of(schema) == expected


def test_a_schema_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="no type is known"):
        type_of({"not": {}})
