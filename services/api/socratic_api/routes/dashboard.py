"""The pages, read once at start and served from memory: nothing else on the disk has an address."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from socratic_api.answers.ready_bytes import ReadyBody, make_ready, ready_response
from socratic_api.endpoints import ApiEndpoint
from socratic_api.pages import DOCUMENT, not_built, read_pages, render

_HTML = "text/html; charset=utf-8"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


def endpoints(static: Traversable | None = None) -> list[ApiEndpoint]:
    """The pages, and the styles, scripts and images they use; `static` holds what was built."""
    static = static or files("socratic_api") / "static"
    read = read_pages(static)
    document = (static / DOCUMENT).read_text(encoding="utf-8") if read else ""
    pages = {page.path: make_ready(render(document, page, read).encode(), _HTML) for page in read}
    assets = _ready_files((static / "assets").iterdir()) if read else {}
    installed = {page.name: _ready_files(page.files) for page in read if page.name}
    missing = None if read else not_built(static)

    def page_at(request: Request, path: str) -> Response:
        if missing is not None:
            return Response(missing, 503, media_type=_HTML)
        return _found(request, pages.get(path))

    async def front_page(request: Request) -> Response:
        return page_at(request, read[0].path if read else "/")

    async def page(request: Request) -> Response:
        return page_at(request, request.url.path)

    async def asset(request: Request) -> Response:
        return _found(request, assets.get(request.path_params["name"]))

    async def asset_of_installed_page(request: Request) -> Response:
        name, page = request.path_params["name"], request.path_params["page"]
        return _found(request, installed.get(page, {}).get(name))

    unknown = "There is no such file"
    return [
        ApiEndpoint("/", front_page, "The ranking, as a page", "text/html"),
        ApiEndpoint(
            "/{page}.html",
            page,
            "A page of the dashboard: `research`, `methodology`, or one that is installed besides",
            "text/html",
            problems={404: "There is no such page"},
        ),
        ApiEndpoint(
            "/assets/{name}", asset, "What the pages are made of", "*/*", problems={404: unknown}
        ),
        ApiEndpoint(
            "/assets/{page}/{name}",
            asset_of_installed_page,
            "What an installed page is made of",
            "*/*",
            problems={404: unknown},
        ),
    ]


def _found(request: Request, ready: ReadyBody | None) -> Response:
    if ready is None:
        raise HTTPException(404)
    return ready_response(request, ready)


def _ready_files(files: Iterable[Traversable | Path]) -> dict[str, ReadyBody]:
    return {
        file.name: make_ready(file.read_bytes(), media_type)
        for file in files
        for suffix, media_type in _MEDIA_TYPES.items()
        if file.name.endswith(suffix)
    }
