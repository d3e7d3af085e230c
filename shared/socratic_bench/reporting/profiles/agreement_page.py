"""The agreement of two profiles as one HTML page: it loads nothing and runs no script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element

from socratic_bench.reporting.formats import MISSING, figure, signed
from socratic_bench.reporting.profiles.agreement import FigureAgreement, Limits, ProfileAgreement
from socratic_bench.reporting.profiles.grading_cost import cost_sentence
from socratic_bench.reporting.report.markup import element, page, table
from socratic_bench.reporting.report.saved_figure import save_link
from socratic_bench.reporting.report.style import STYLE
from socratic_bench.version import __version__

_STYLE: Final = (
    STYLE
    + """
.plots { display: flex; flex-wrap: wrap; gap: 1.5rem 2rem; }
figure { margin: 0; } figcaption { font-size: .875rem; }
.plot { max-width: 100%; height: auto; font: 11px system-ui, sans-serif; }
.plot text { fill: var(--quiet); } .plot .limit { stroke: var(--mark); stroke-dasharray: 4 3; }
.plot .mean { stroke: var(--mark); stroke-width: 1.5; } .plot circle { fill-opacity: .35; }
@media print { .save { display: none; } }
"""
)
_LOOKS: Final = {
    "axis": {"stroke": "#d9dce1"},
    "limit": {"stroke": "#1f5fa8", "stroke-dasharray": "4 3"},
    "mean": {"stroke": "#1f5fa8", "stroke-width": "1.5"},
    "circle": {"fill": "#1f5fa8", "fill-opacity": "0.35"},
    "text": {"fill": "#5b6169"},
}
"""The looks of a saved plot: those of the page on a light ground."""

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP = 320, 220, 44, 18, 12


def agreement_page(agreement: ProfileAgreement) -> str:
    """Return the page."""
    title = f"{agreement.first} and {agreement.second}"
    return page(title, _STYLE, element("main", *_content(agreement, title)))


def _content(agreement: ProfileAgreement, title: str) -> Iterator[Element]:
    yield element("h1", title)
    named = f"{agreement.title} ({agreement.experiment_id})" if agreement.title else ""
    yield element(
        "p",
        f"How far do two profiles agree on the same {agreement.responses:,} responses of "
        f"{named or agreement.experiment_id}?",
        class_="lead",
    )
    if agreement.only_first or agreement.only_second:
        yield element(
            "p",
            f"{agreement.only_first:,} further responses have a score by {agreement.first} alone, "
            f"{agreement.only_second:,} by {agreement.second} alone; they are left out.",
            class_="aid",
        )
    yield element("h2", "Agreement")
    yield _agreement(agreement)
    yield element("h2", "Differences of single responses (Bland–Altman)")
    yield element(
        "p",
        f"Each dot is a response: across, the mean of its two scores; upwards, {agreement.first} "
        f"less {agreement.second}. The line is the mean difference; between the dashed lines lie "
        "about 95 % of the differences. Dots on a slope or in a fan tell of scales that differ.",
        class_="aid",
    )
    plots = (
        _plot(agreement, each, each.difference) for each in agreement.figures if each.difference
    )
    yield element("div", *plots, class_="plots")
    yield element("h2", "Ranks of the models")
    yield element(
        "p",
        "A range holds the ranks that a model may have; ranges without a common rank are a change "
        "that chance does not explain.",
        class_="aid",
    )
    yield _ranks(agreement)
    yield element("h2", "What the scores cost")
    for sentence in cost_sentences(agreement):
        yield element("p", sentence)
    yield element("h2", "How to read it")
    for sentence in READING:
        yield element("p", sentence, class_="aid")


READING: Final = (
    "Spearman's rank correlation is 1.00 where both put the responses in the same order.",
    "Lin's concordance is 1.00 only where both give the same scores.",
    "Kappa asks which responses score 0.50 or more: 1.00 is full agreement, 0.00 that of chance.",
    "Responses of one scenario resemble each other: their number overstates what is known.",
    "Agreement is not validity: `socratic-bench validity` compares each with people's labels.",
)
"""What a reader must know of the figures, one thought a sentence."""


def _agreement(agreement: ProfileAgreement) -> Element:
    headings = (
        "figure",
        "responses",
        f"mean, {agreement.first}",
        f"mean, {agreement.second}",
        "Spearman",
        "concordance",
        "kappa at 0.50",
        "difference",
        "95 % limits",
    )
    rows = (
        (
            each.name,
            f"{each.pairs:,}",
            figure(each.first_mean),
            figure(each.second_mean),
            figure(each.spearman),
            figure(each.concordance),
            figure(each.kappa),
            MISSING if each.difference is None else signed(each.difference.mean),
            limits_text(each.difference),
        )
        for each in agreement.figures
    )
    return table(headings, rows, caption="Both profiles on the same responses")


def cost_sentences(agreement: ProfileAgreement) -> tuple[str, str]:
    """Say what each profile cost."""
    return (
        cost_sentence(agreement.first, agreement.first_cost),
        cost_sentence(agreement.second, agreement.second_cost),
    )


def limits_text(limits: Limits | None) -> str:
    """Return the limits of agreement with their signs; a dash without any."""
    return MISSING if limits is None else f"{signed(limits.low)} to {signed(limits.high)}"


def ranks_text(rank: int | None, ranks: tuple[int, int] | None) -> str:
    """Return the ranks that a model may have, such as 1–3; a dash without a rank."""
    if rank is None:
        return MISSING
    best, worst = ranks or (rank, rank)
    return str(best) if best == worst else f"{best}–{worst}"


def _ranks(agreement: ProfileAgreement) -> Element:
    headings = (
        "model",
        f"rank, {agreement.first}",
        "overall",
        f"rank, {agreement.second}",
        "overall",
        "changes",
    )
    rows = (
        (
            each.model_name,
            ranks_text(each.first_rank, each.first_ranks),
            figure(each.first_overall),
            ranks_text(each.second_rank, each.second_ranks),
            figure(each.second_overall),
            "yes" if each.changes else "no",
        )
        for each in agreement.models
    )
    return table(headings, rows, caption="Models, in the order of the first profile")


def _plot(agreement: ProfileAgreement, each: FigureAgreement, limits: Limits) -> Element:
    said = (
        f"{each.name}: mean difference {signed(limits.mean)}, 95 % limits {limits_text(limits)}, "
        f"{each.pairs:,} responses"
    )
    marks = [element("title", said)]
    marks += [_line(value, "axis") for value in (-1.0, 0.0, 1.0)]
    marks += [_label(value) for value in (-1.0, 0.0, 1.0)]
    marks += [
        element("circle", cx=_x((one + other) / 2), cy=_y(one - other), r="2.5")
        for one, other in each.points
    ]
    marks += [_line(limits.low, "limit"), _line(limits.mean, "mean"), _line(limits.high, "limit")]
    for value in (0.0, 0.5, 1.0):
        place = {"x": _x(value), "y": f"{_HEIGHT - 6}", "text-anchor": "middle"}
        marks.append(_text(f"{value:.2f}", place))
    drawn = element(
        "svg",
        *marks,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        width=f"{_WIDTH}",
        height=f"{_HEIGHT}",
        class_="plot",
    )
    caption = (
        f"{each.name}: mean difference {signed(limits.mean)}",
        f"95 % limits {limits_text(limits)}, {each.pairs:,} responses",
        f"{agreement.first} less {agreement.second}",
        agreement.experiment_id,
        f"Socratic Bench {__version__}",
    )
    file = f"socratic-bench-agreement-{each.name}-{agreement.experiment_id}"
    link = save_link(drawn, file, caption, _LOOKS)
    return element("figure", drawn, element("figcaption", said, " ", link))


def _line(value: float, kind: str) -> Element:
    y = _y(value)
    return element("line", x1=f"{_LEFT}", x2=f"{_WIDTH - _RIGHT}", y1=y, y2=y, class_=kind)


def _label(value: float) -> Element:
    y = f"{float(_y(value)) + 4:.1f}"
    return _text(signed(value), {"x": f"{_LEFT - 6}", "y": y, "text-anchor": "end"})


def _text(said: str, place: dict[str, str]) -> Element:
    made = Element("text", place)
    made.text = said
    return made


def _x(value: float) -> str:
    return f"{_LEFT + (_WIDTH - _RIGHT - _LEFT) * value:.1f}"


def _y(difference: float) -> str:
    """Differences outside -1 to 1, which limits may reach, stay at the edge."""
    shown = max(-1.05, min(1.05, difference))
    return f"{_TOP + (_HEIGHT - 40) * (1.05 - shown) / 2.1:.1f}"
