"""HTML from elements: every text is escaped, since names and messages are data, never markup."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

from socratic_bench.reporting.formats import printable
from socratic_bench.version import __version__

Child = Element | str


def element(tag: str, *children: Child, **attributes: str) -> Element:
    """Return an element with these children; `class_` is the attribute `class`, and
    `aria_label` is `aria-label`.

    What does not print in a text, line ends aside, is replaced.
    """
    made = Element(
        tag,
        {name.rstrip("_").replace("_", "-"): _shown(value) for name, value in attributes.items()},
    )
    for child in children:
        if isinstance(child, Element):
            made.append(child)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + _shown(child)
        else:
            made.text = (made.text or "") + _shown(child)
    return made


def table(
    headings: Iterable[str], rows: Iterable[Iterable[Child]], *, caption: str, words: int = 1
) -> Element:
    """Return a table; its first `words` columns hold words, the others figures.

    The first cell of each row is its heading.
    """
    kinds = _Kinds(words)
    head = element(
        "tr",
        *(
            element("th", each, scope="col", class_=kinds[place])
            for place, each in enumerate(headings)
        ),
    )
    body = [
        element(
            "tr",
            *(
                element("td", each, class_=kinds[place])
                if place
                else element("th", each, scope="row", class_=kinds[place])
                for place, each in enumerate(row)
            ),
        )
        for row in rows
    ]
    whole = element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", *body),
    )
    return element("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)


class _Kinds:
    """The class of each column."""

    def __init__(self, words: int) -> None:
        self._words = words

    def __getitem__(self, place: int) -> str:
        return "word" if place < self._words else "figure"


def page(title: str, style: str, *content: Element) -> str:
    """Return a whole page as text; it loads nothing and runs no script.

    Its policy allows the one style by its hash.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    root = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=policy),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="generator", content=f"Socratic Bench {__version__}"),
            element("title", f"{title} \u00b7 Socratic Bench"),
            element("style", style),
        ),
        element("body", *content),
        lang="en",
    )
    return html(root)


def html(root: Element) -> str:
    """Return a page as text."""
    return "<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def _shown(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))
