"""The pages, read once at start and served from memory: nothing else on the disk has an address."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBody, make_ready, ready_response
from socratic_api.endpoints import Endpoint

_HTML = "text/html; charset=utf-8"
_MEDIA_TYPES = {
    ".html": _HTML,
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def endpoints() -> list[Endpoint]:
    """The two pages, and the styles, scripts and images they use."""
    folder = files("socratic_api") / "dashboard"
    pages = _ready_files(folder)
    assets = _ready_files(folder / "assets")

    async def front_page(request: Request) -> Response:
        return ready_response(request, pages["research.html"])

    async def research_page(request: Request) -> Response:
        return ready_response(request, pages["research.html"])

    async def methodology_page(request: Request) -> Response:
        return ready_response(request, pages["methodology.html"])

    async def asset(request: Request) -> Response:
        found = assets.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return ready_response(request, found)

    return [
        Endpoint("/", front_page, "The ranking, as a page", "text/html"),
        Endpoint("/research.html", research_page, "The ranking, as a page", "text/html"),
        Endpoint("/methodology.html", methodology_page, "The method, as a page", "text/html"),
        Endpoint(
            "/assets/{name}",
            asset,
            "What the pages are made of",
            "*/*",
            problems={404: "There is no such asset"},
        ),
    ]


def _ready_files(folder: Traversable) -> dict[str, ReadyBody]:
    return {
        file.name: make_ready(file.read_bytes(), media_type)
        for file in folder.iterdir()
        for suffix, media_type in _MEDIA_TYPES.items()
        if file.name.endswith(suffix)
    }
