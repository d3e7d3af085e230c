"""The pages of the dashboard: those that its sources are built into, and other distributions'.

Another distribution offers a page under the entry point group `socratic_bench.pages`: a `Page`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Final

import structlog

from socratic_bench.errors import BrokenPlugin
from socratic_bench.plugins import Plugin, found

GROUP: Final = "socratic_bench.pages"
DOCUMENT: Final = "document.html"
NOT_BUILT: Final = "not-built.txt"
"""Where `dashboard/build.py` leaves the reason why there are no pages."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_PATH = re.compile(r"/[a-z0-9][a-z0-9-]*\.html")

_MISSING = Template("""<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <title>Not built · Socratic Bench</title>
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
</head>
<body>
  <main>
    <h1>The pages are not built</h1>
    <p>$reason</p>
    <p>Build them with <code>make dashboard</code> in the folder of the project. Then start the API
    again.</p>
    <p>The API itself works: <a href="/api/model-comparison">/api/model-comparison</a> has the
    ranking, and <a href="/openapi.json">/openapi.json</a> describes the rest.</p>
  </main>
</body>
</html>
""")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of another distribution, shown in the frame of ours: head, navigation and styles."""

    title: str
    """Its name in the navigation."""

    path: str
    """Its address, such as `/costs.html`: lower-case letters, digits and hyphens."""

    folder: Traversable | Path
    """Its built files. `page.html` is what stands between navigation and end; `page.js`, a module,
    and `page.css` are loaded where they are there. All but `page.html` are served below
    `/assets/NAME/`, by the name of the entry point."""

    description: str = ""
    narrow: bool = False
    """Whether it is a text to read, in a narrow column."""


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page with its content; the addresses of its scripts and styles are relative to the root."""

    title: str
    path: str
    description: str
    narrow: bool
    content: str
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    files: Sequence[Traversable | Path] = field(default=(), repr=False)
    """What is served below `assets/NAME/`, of an installed page."""

    name: str = ""
    """Of the entry point, of an installed page."""

    listed: bool = True
    """Whether the navigation names it: a page about one thing is reached from others."""


def read_pages(static: Traversable) -> list[ReadPage]:
    """The built pages in the order of the navigation, the front page first; installed ones follow.

    Empty where nothing is built.
    """
    if not (static / DOCUMENT).is_file():
        return []
    built = [_built(static, each) for each in json.loads((static / "pages.json").read_text())]
    taken = {page.path for page in built}
    for plugin in found(GROUP).values():
        try:
            page = _installed(plugin)
            if page.path in taken:
                raise plugin.broken(f"another page has the path {page.path}")
        except BrokenPlugin as error:
            log.warning("page left out", page=plugin.name, reason=str(error))
            continue
        taken.add(page.path)
        built.append(page)
    return built


def _built(static: Traversable, entry: dict[str, str]) -> ReadPage:
    module = entry["module"]
    return ReadPage(
        title=entry["title"],
        path=entry["path"],
        description=entry["description"],
        narrow=bool(entry.get("narrow")),
        listed=not entry.get("unlisted"),
        content=(static / "pages" / f"{module}.html").read_text(encoding="utf-8"),
        scripts=(f"assets/{module}.js",),
    )


def _installed(plugin: Plugin) -> ReadPage:
    page = plugin.load()
    if not isinstance(page, Page):
        raise plugin.broken(f"is no socratic_api.pages.Page but {type(page).__name__}")
    if not _NAME.fullmatch(plugin.name):
        raise plugin.broken("a name has lower-case letters, digits, - and _ alone")
    if not _PATH.fullmatch(page.path):
        raise plugin.broken(f"{page.path!r} is no path such as /costs.html")
    try:
        content = (page.folder / "page.html").read_text(encoding="utf-8")
        files = {file.name: file for file in page.folder.iterdir() if file.is_file()}
    except (OSError, UnicodeDecodeError) as error:
        raise plugin.broken(f"its page.html cannot be read: {error}") from error
    del files["page.html"]

    def served(name: str) -> tuple[str, ...]:
        return (f"assets/{plugin.name}/{name}",) if name in files else ()

    return ReadPage(
        title=page.title,
        path=page.path,
        description=page.description,
        narrow=page.narrow,
        content=content,
        scripts=served("page.js"),
        styles=served("page.css"),
        files=tuple(files.values()),
        name=plugin.name,
    )


def render(document: str, page: ReadPage, pages: Sequence[ReadPage]) -> str:
    """The page as a whole document, with all `pages` in its navigation."""
    return Template(document).substitute(
        title=escape(page.title),
        description=escape(page.description),
        kind="text-page" if page.narrow else "wide-page",
        styles="".join(f'\n  <link rel="stylesheet" href="{each}">' for each in page.styles),
        scripts="".join(
            f'\n  <script type="module" src="{each}"></script>' for each in page.scripts
        ),
        navigation="".join(_link(each, current=each is page) for each in pages if each.listed),
        content=page.content.rstrip(),
    )


def _link(page: ReadPage, *, current: bool) -> str:
    mark = ' aria-current="page"' if current else ""
    return f'\n      <a href="{page.path.lstrip("/")}"{mark}>{escape(page.title)}</a>'


def not_built(static: Traversable) -> str:
    """The page that stands in for all others while nothing is built; it says why."""
    try:
        reason = (static / NOT_BUILT).read_text(encoding="utf-8").strip()
    except OSError:
        reason = "Nobody has built them yet."
    return _MISSING.substitute(reason=escape(reason))
