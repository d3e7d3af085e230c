"""A drawing of a page as a file of its own: a link that needs no script and loads nothing."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Final
from xml.etree.ElementTree import Element, tostring

from socratic_bench.reporting.report.markup import element

_LINE: Final = 14
_FONT: Final = {"font-family": "system-ui, sans-serif", "font-size": "11"}


def save_link(
    drawn: Element,
    file: str,
    caption: Sequence[str],
    looks: Mapping[str, Mapping[str, str]],
) -> Element:
    """Return a link that saves a drawing as an SVG, with a light ground and `caption` below it.

    `looks` has the attributes of each class, or of each tag without a class: the styles of the page
    stay behind.
    """
    svg = standalone(drawn, caption, looks)
    text = base64.b64encode(tostring(svg, encoding="utf-8", xml_declaration=True)).decode()
    address = f"data:image/svg+xml;base64,{text}"
    return element("a", "Save SVG", href=address, download=f"{file}.svg", class_="save")


def standalone(
    drawn: Element, caption: Sequence[str], looks: Mapping[str, Mapping[str, str]]
) -> Element:
    """Return a copy of a drawing that needs no page around it."""
    width, height = int(drawn.attrib["width"]), int(drawn.attrib["height"])
    whole = height + _LINE * (len(caption) + 1)
    size = {"width": f"{width}", "height": f"{whole}", "viewBox": f"0 0 {width} {whole}"}
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **_FONT})
    svg.extend(deepcopy(list(drawn)))
    for mark in svg.iter():
        kind = mark.attrib.pop("class", mark.tag)
        mark.attrib.update(looks.get(kind, {}))
    svg.insert(1, Element("rect", {"width": "100%", "height": "100%", "fill": "#ffffff"}))
    for place, line in enumerate(caption):
        text = element("text", line, x="6", y=f"{height + _LINE * (place + 1)}", fill="#5b6169")
        svg.append(text)
    return svg
