"""The OpenAPI 3.1 document, built from the endpoints and their pydantic models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, RootModel
from pydantic.json_schema import models_json_schema
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, ReadyBody, make_ready, ready_response
from socratic_api.endpoints import ApiEndpoint
from socratic_api.http.problems import MEDIA_TYPE as PROBLEM_JSON
from socratic_api.http.problems import Problem
from socratic_bench.version import __version__

Model = type[BaseModel]
Mode = Literal["validation", "serialization"]
References = Mapping[tuple[Model, Mode], Mapping[str, Any]]
_PATH_PARAMETER = re.compile(r"{(\w+)}")


def openapi_document(endpoints: Sequence[ApiEndpoint]) -> dict[str, Any]:
    """Return the document as JSON data; it contains every endpoint."""
    references, schemas = _schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, references)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Socratic Bench",
            "version": __version__,
            "description": "How Socratic are language models as tutors? Scores run from 0.0 to "
            "1.0, unrounded; null is unknown or unscored, which is never zero.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schemas(
    endpoints: Iterable[ApiEndpoint],
) -> tuple[References, dict[str, Any]]:
    wanted: dict[tuple[Model, Mode], None] = {(Problem, "serialization"): None}
    for endpoint in endpoints:
        if not isinstance(endpoint.answer, str):
            wanted[endpoint.answer, "serialization"] = None
        if endpoint.accepts is not None:
            wanted[endpoint.accepts, "validation"] = None
    references, definitions = models_json_schema(
        list(wanted), ref_template="#/components/schemas/{model}"
    )
    by_model = {(model, mode): references[model, mode] for model, mode in wanted}
    return by_model, definitions.get("$defs", {})


def _operation(endpoint: ApiEndpoint, references: References) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "responses": {
            str(endpoint.status): {
                "description": endpoint.summary,
                "content": _content(endpoint, references),
            }
        },
    }
    if endpoint.description:
        operation["description"] = endpoint.description
    if parameters := _parameters(endpoint):
        operation["parameters"] = parameters
    if endpoint.accepts is not None:
        schema = references[endpoint.accepts, "validation"]
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    schema = references[Problem, "serialization"]
    for status, when in endpoint.problems.items():
        operation["responses"][str(status)] = {
            "description": when,
            "content": {PROBLEM_JSON: {"schema": schema}},
        }
    # The server answers this before the API sees the request.
    refused = operation["responses"].setdefault(
        "400", {"description": "The head of the request is too large", "content": {}}
    )
    refused["content"]["text/plain"] = {"schema": {"type": "string"}}
    return operation


def _content(endpoint: ApiEndpoint, references: References) -> dict[str, Any]:
    content: dict[str, Any]
    if isinstance(endpoint.answer, str):
        content = {endpoint.answer: {"schema": {}}}
    else:
        content = {JSON: {"schema": references[endpoint.answer, "serialization"]}}
    for media_type in endpoint.also:
        schema = {"type": "string"} if media_type.startswith("text/") else {}
        content[media_type.partition(";")[0]] = {"schema": schema}
    return content


def _parameters(endpoint: ApiEndpoint) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PATH_PARAMETER.findall(endpoint.path)
    ]
    in_query = [
        {
            "name": parameter.name,
            "in": "query",
            "required": parameter.required,
            "description": parameter.description,
            "schema": dict(parameter.schema),
        }
        for parameter in endpoint.parameters
    ]
    return in_path + in_query


class OpenApiDocument(RootModel[dict[str, Any]]):
    """An OpenAPI 3.1 document."""


def with_openapi(endpoints: Sequence[ApiEndpoint]) -> list[ApiEndpoint]:
    """Return these endpoints and the one that describes them all, itself included.

    The first request makes the description: it takes most of the time of a start, and few ask.
    """

    @cache
    def ready() -> ReadyBody:
        return make_ready(to_json(openapi_document(described)), JSON)

    async def openapi(request: Request) -> Response:
        return ready_response(request, await asyncio.to_thread(ready))

    itself = ApiEndpoint("/openapi.json", openapi, "This description", OpenApiDocument)
    described = [*endpoints, itself]
    return described
