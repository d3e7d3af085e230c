"""The agreement of two profiles as one HTML page: it loads nothing and runs no script."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Final
from xml.etree.ElementTree import Element, tostring

from socratic_bench.research.agreement import (
    DifferenceLimits,
    FigureAgreement,
    ProfileAgreement,
    cost_sentence,
)
from socratic_bench.results.formats import MISSING, printable, signed
from socratic_bench.results.pages import rendered
from socratic_bench.version import __version__

READING: Final = (
    "Spearman's rank correlation is 1.00 where both put the responses in the same order.",
    "Lin's concordance is 1.00 only where both give the same scores.",
    "Kappa asks which responses score 0.50 or more: 1.00 is full agreement, 0.00 that of chance.",
    "Responses of one scenario resemble each other: their number overstates what is known.",
    "Agreement is not validity: `socratic-bench validity` compares each with people's labels.",
)
"""What a reader must know of the figures, one thought a sentence."""

_LOOKS: Final[Mapping[str, Mapping[str, str]]] = {
    "axis": {"stroke": "#d9dce1"},
    "limit": {"stroke": "#1f5fa8", "stroke-dasharray": "4 3"},
    "mean": {"stroke": "#1f5fa8", "stroke-width": "1.5"},
    "circle": {"fill": "#1f5fa8", "fill-opacity": "0.35"},
    "text": {"fill": "#5b6169"},
}
"""The looks of a saved plot, by class or else by tag: those of the page on a light ground."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP = 520, 360, 44, 18, 12
_CAPTION_LINE: Final = 14


def agreement_page(agreement: ProfileAgreement) -> str:
    """Return the page. Raises MissingExtra without Jinja."""
    return rendered(
        "agreement",
        f"{agreement.first} and {agreement.second}",
        agreement=agreement,
        plots=[
            _plot(agreement, each, each.difference) for each in agreement.figures if each.difference
        ],
        limits=limits_text,
        ranks=ranks_text,
        costs=cost_sentences(agreement),
        reading=READING,
    )


def cost_sentences(agreement: ProfileAgreement) -> tuple[str, str]:
    """Say what each profile cost."""
    return (
        cost_sentence(agreement.first, agreement.first_cost),
        cost_sentence(agreement.second, agreement.second_cost),
    )


def limits_text(limits: DifferenceLimits | None) -> str:
    """Return the limits of agreement with their signs; a dash without any."""
    return MISSING if limits is None else f"{signed(limits.low)} to {signed(limits.high)}"


def ranks_text(rank: int | None, ranks: tuple[int, int] | None) -> str:
    """Return the ranks that a model may have, such as 1–3; a dash without a rank."""
    if rank is None:
        return MISSING
    best, worst = ranks or (rank, rank)
    return str(best) if best == worst else f"{best}–{worst}"


def _plot(
    agreement: ProfileAgreement, each: FigureAgreement, limits: DifferenceLimits
) -> Mapping[str, str]:
    """Return a drawing, what it says, and the same drawing as a file that needs no page."""
    said = (
        f"{each.name}: mean difference {signed(limits.mean)}, 95 % limits {limits_text(limits)}, "
        f"{each.pairs:,} responses"
    )
    drawing = _drawing(said, each, limits)
    caption = (
        f"{each.name}: mean difference {signed(limits.mean)}",
        f"95 % limits {limits_text(limits)}, {each.pairs:,} responses",
        f"{agreement.first} less {agreement.second}",
        agreement.experiment_id,
        f"Socratic Bench {__version__}",
    )
    saved = tostring(_standalone(drawing, caption), encoding="utf-8", xml_declaration=True)
    return {
        "drawing": tostring(drawing, encoding="unicode", method="html"),
        "said": said,
        "saved": base64.b64encode(saved).decode(),
        "file": f"socratic-bench-agreement-{each.name}-{agreement.experiment_id}.svg",
    }


def _drawing(said: str, each: FigureAgreement, limits: DifferenceLimits) -> Element:
    size = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "width": f"{_WIDTH}", "height": f"{_HEIGHT}"}
    svg = Element("svg", {**size, "role": "img", "class": "plot"})
    svg.append(_element("title", said))
    svg.extend(_line(value, "axis") for value in (-1.0, 0.0, 1.0))
    for value in (-1.0, 0.0, 1.0):
        y = f"{float(_y(value)) + 4:.1f}"
        svg.append(_element("text", signed(value), x=f"{_LEFT - 6}", y=y, text_anchor="end"))
    svg.extend(
        _element("circle", cx=_x((one + other) / 2), cy=_y(one - other), r="2.5")
        for one, other in each.points
    )
    lines = ((limits.low, "limit"), (limits.mean, "mean"), (limits.high, "limit"))
    svg.extend(_line(value, kind) for value, kind in lines)
    for value in (0.0, 0.5, 1.0):
        x, y = _x(value), f"{_HEIGHT - 6}"
        svg.append(_element("text", f"{value:.2f}", x=x, y=y, text_anchor="middle"))
    return svg


def _standalone(drawing: Element, caption: Sequence[str]) -> Element:
    """Return a copy with a light ground and `caption` below it: the page's style stays behind."""
    whole = _HEIGHT + _CAPTION_LINE * (len(caption) + 1)
    size = {"width": f"{_WIDTH}", "height": f"{whole}", "viewBox": f"0 0 {_WIDTH} {whole}"}
    font = {"font-family": "system-ui, sans-serif", "font-size": "11"}
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **font})
    svg.extend(deepcopy(list(drawing)))
    for mark in svg.iter():
        kind = mark.attrib.pop("class", mark.tag)
        mark.attrib.update(_LOOKS.get(kind, {}))
    svg.insert(1, _element("rect", width="100%", height="100%", fill="#ffffff"))
    for place, line in enumerate(caption, start=1):
        y = f"{_HEIGHT + _CAPTION_LINE * place}"
        svg.append(_element("text", line, x="6", y=y, fill="#5b6169"))
    return svg


def _line(value: float, kind: str) -> Element:
    y = _y(value)
    return _element("line", x1=f"{_LEFT}", x2=f"{_WIDTH - _RIGHT}", y1=y, y2=y, class_=kind)


def _element(tag: str, text: str = "", **attributes: str) -> Element:
    """Return an element; `class_` is the attribute `class`, `text_anchor` is `text-anchor`."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    made = Element(tag, names)
    made.text = printable(text) or None
    return made


def _x(value: float) -> str:
    return f"{_LEFT + (_WIDTH - _RIGHT - _LEFT) * value:.1f}"


def _y(difference: float) -> str:
    """Differences outside -1 to 1, which limits may reach, stay at the edge."""
    shown = max(-1.05, min(1.05, difference))
    return f"{_TOP + (_HEIGHT - 40) * (1.05 - shown) / 2.1:.1f}"
