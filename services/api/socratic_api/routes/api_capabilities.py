"""`/api/capabilities`: the abilities of this API, so that a page offers nothing in vain."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import JSON, make_ready, ready_response
from socratic_api.control.capabilities import Capabilities
from socratic_api.endpoints import Endpoint


class ApiCapabilities(BaseModel):
    """The abilities of an API besides reading."""

    model_config = ConfigDict(frozen=True)

    starts: bool
    """Whether it starts experiments and puts dead letters back: it has a broker."""

    changes: bool
    """Whether it pauses, resumes, cancels and deletes experiments."""

    streams: bool
    """Whether it sends events; otherwise clients poll with If-None-Match."""

    needs_key: bool
    """Whether scoring and changes take a key."""


def endpoints(capabilities: Capabilities, *, needs_key: bool) -> list[Endpoint]:
    """Return the endpoint of the abilities, which stay the same while the API runs."""
    abilities = ApiCapabilities(
        starts=capabilities.broker is not None,
        changes=capabilities.may_write,
        streams=capabilities.may_stream,
        needs_key=needs_key,
    )
    ready = make_ready(to_json(abilities), JSON)

    async def show_capabilities(request: Request) -> Response:
        return ready_response(request, ready)

    return [
        Endpoint(
            "/api/capabilities",
            show_capabilities,
            "Whether this API starts and changes experiments, sends events, and takes keys",
            ApiCapabilities,
        )
    ]
