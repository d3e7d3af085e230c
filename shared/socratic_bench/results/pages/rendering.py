"""Pages from templates: each text is escaped, since names and messages are data, never markup."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING

from socratic_bench.extras import require_package
from socratic_bench.results import formats
from socratic_bench.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(page: str, title: str, **data: object) -> str:
    """Return the page of the template `page`; it loads nothing and runs no script.

    Its policy allows the one style by its hash. What does not print is replaced, line ends aside.
    Raises MissingExtra without Jinja.
    """
    environment = _environment()
    style = environment.get_template("style.css").render()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    text = environment.get_template(f"{page}.html").render(
        data, page=page, title=title, style=style, digest=digest
    )
    return "\n".join(map(formats.printable, text.split("\n")))


@cache
def _environment() -> Environment:
    """Load Jinja at the first page: starting a command does without it."""
    require_package("jinja2", needed_by="a page", extra="socratic-ai-bench-core[pages]")
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - see above

    environment = Environment(
        loader=PackageLoader("socratic_bench.results"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    shown = (formats.cost, formats.figure, formats.interval, formats.moment, formats.share)
    environment.filters.update({each.__name__: each for each in (*shown, formats.signed)})
    environment.globals.update(missing=formats.MISSING, version=__version__)
    return environment
