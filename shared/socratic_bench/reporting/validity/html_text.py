"""A validity report as one HTML page: no script, no other file, every text escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from socratic_bench.reporting.validity.report import (
    ColumnFigures,
    Interval,
    LabelFigures,
    Paired,
    ValidityReport,
)
from socratic_bench.scoring.profile import OVERALL

ROW: Final = 20
GAP: Final = 12
"""Units of the plot between two columns, and besides between two labels."""

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 77rem; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .875rem; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid #d5dbe1; text-align: right; white-space: nowrap; }
thead th { white-space: normal; }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif; } .set { font-weight: 600; }
.tick { stroke: #e6eaee; } .chance { stroke: #56616d; stroke-dasharray: 4 4; }
.range { stroke: #56616d; stroke-width: 2; } .dot { fill: #fff; stroke: #1d2733; stroke-width: 2; }
.dot.meant { fill: #1d2733; } svg .quiet { fill: #56616d; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #1d2733; vertical-align: bottom; }
.meant { font-weight: 600; } .ahead { color: #14622f; } .loss { color: #a3201d; font-weight: 600; }
.quiet { color: #56616d; } td .quiet { display: block; font-size: .85em; }
td { vertical-align: top; }
"""  # noqa: E501


def html_text(report: ValidityReport) -> str:
    """Return the page."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'"
    body = "".join(
        (
            _lead(report),
            _plot(report),
            _summary(report),
            *(_label(each, report.profiles[0]) for each in report.labels),
            _ablation(report),
            _gaming(report),
            _constant(report),
            _problems(report),
        )
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Validity report</title><style>{_STYLE}</style></head>"
        f"<body><main>{body}</main></body></html>\n"
    )


def _lead(report: ValidityReport) -> str:
    rows = ", ".join(f"{each.responses:,} of {escape(each.name)}" for each in report.data)
    unscored = sum(each.unscored for each in report.data)
    return (
        "<h1>What the scores are worth</h1>"
        "<p>Each figure compares a score with people's labels. AUC is the probability that a "
        "response with the label has a higher score than one without it: 0.5 is chance, 1.0 is "
        "perfect. Intervals are 95 %, by a bootstrap over groups of related responses "
        f"({report.resamples:,} resamples, seed {report.seed}).</p>"
        f'<p class="quiet">Responses: {rows}; {unscored:,} without a score are left out. '
        f"{_version(report)}{escape(', '.join(report.profiles))}.</p>"
    )


def _version(report: ValidityReport) -> str:
    return "" if report.version is None else f"socratic-bench {escape(report.version)}; "


def _summary(report: ValidityReport) -> str:
    profiles = report.profiles
    head = (
        *("set, label", "n"),
        *(f"{profile}" for profile in profiles),
        *("meant for the label", "its AUC", f"against {profiles[0]}"),
        *("best LLM judge", "its AUC", "against it"),
    )
    rows = []
    for label in report.labels:
        meant = label.column(label.dimension)
        judge = label.column(label.best_judge) if label.best_judge else None
        rows.append(
            (
                escape(f"{label.data}: {label.label}"),
                f"{label.n:,}",
                *(_auc(label.column(f"{profile} {OVERALL}")) for profile in profiles),
                escape(label.dimension),
                _auc(meant),
                _against(meant, f"{profiles[0]} {OVERALL}"),
                escape(judge.column) if judge else "-",
                _auc(judge),
                _against(meant, judge.column if judge else ""),
            )
        )
    return f"<h2>In one table</h2>{_table(head, rows)}"


def _label(label: LabelFigures, first: str) -> str:
    judge = label.best_judge or ""
    head = (
        *("column", "n", "AUC", "Spearman", "κ", "its cuts", "within tutor", "within source"),
        f"against {first}",
        *((f"against {judge}", "as coarse") if judge else ()),
    )
    rows = [
        (
            _named(each, label.dimension),
            f"{each.n:,}",
            _with_interval(each.auc, each.interval),
            *(_figure(value) for value in (each.spearman, each.kappa)),
            "-" if each.cuts is None else " ".join(f"{cut:.2f}" for cut in each.cuts),
            *(_figure(value) for value in (each.within_tutor, each.within_source)),
            _against(each, f"{first} {OVERALL}"),
            *((_against(each, judge), _figure(each.as_coarse)) if judge else ()),
        )
        for each in label.columns
    ]
    coarse = (
        f" <i>As coarse</i>: the AUC in as many levels as {escape(judge)} has." if judge else ""
    )
    return (
        f"<h2>{escape(label.data)}: {escape(label.label)}</h2>"
        f"<p>{label.n:,} responses in {label.groups:,} groups; {label.positives:,} have the "
        "label. The column in bold was meant for it. Each half of the groups has a cut of κ that "
        "was chosen on the other half; the last bit of the SHA-256 of a group's name tells its "
        f"half.{coarse}</p>{_table(head, rows)}"
    )


def _plot(report: ValidityReport) -> str:
    """Return the AUC of each label's columns as dots with their intervals."""
    rows = [
        (label, [column for name in _plotted(report, label) if (column := label.column(name))])
        for label in report.labels
    ]
    height = sum(ROW * len(columns) + GAP for _, columns in rows) + 40
    marks, y = [], 24
    for label, columns in rows:
        text = escape(f"{label.data}: {label.label}")
        marks.append(f'<text x="0" y="{y + 4}" class="set">{text}</text>')
        for column in columns:
            marks.append(_dot(column, y, is_meant=column.column == label.dimension))
            y += ROW
        y += GAP
    ticks = "".join(
        f'<line class="{"chance" if tick == 5 else "tick"}" x1="{_x(tick / 10)}" y1="10" '
        f'x2="{_x(tick / 10)}" y2="{height - 24}"/>'
        f'<text class="quiet" text-anchor="middle" x="{_x(tick / 10)}" y="{height - 8}">'
        f"{tick / 10:.1f}</text>"
        for tick in range(3, 11)
    )
    return (
        "<h2>In one picture</h2><p>A dot is an AUC, the line its 95 % interval; a full dot is the "
        "column that was meant for the label. The dashed line is chance.</p>"
        f'<svg viewBox="0 0 1100 {height}" role="img" aria-label="AUC of each label\'s columns '
        f'with intervals; the tables below have the figures">{ticks}{"".join(marks)}</svg>'
    )


def _plotted(report: ValidityReport, label: LabelFigures) -> list[str]:
    """Return the columns of a label that the plot shows, each once."""
    names = [f"{profile} {OVERALL}" for profile in report.profiles]
    names += [label.dimension, *([label.best_judge] if label.best_judge else [])]
    return list(dict.fromkeys(names))


def _dot(column: ColumnFigures, y: int, *, is_meant: bool) -> str:
    if column.auc is None:
        return ""
    line = ""
    if column.interval:
        low, high = map(_x, column.interval)
        line = f'<line class="range" x1="{low}" y1="{y}" x2="{high}" y2="{y}"/>'
    kind = "dot meant" if is_meant else "dot"
    return (
        f'<text class="quiet" x="230" y="{y + 4}">{escape(column.column)}</text>{line}'
        f'<circle class="{kind}" cx="{_x(column.auc)}" cy="{y}" r="4"/>'
    )


def _x(auc: float) -> float:
    """Return the place of an AUC; the axis begins at 0.3, and lower ones stand at its start."""
    return round(450 + (max(auc, 0.3) - 0.3) / 0.7 * 620, 1)


def _named(column: ColumnFigures, dimension: str) -> str:
    kind = "meant" if column.column == dimension else ""
    return f'<span class="{kind}">{escape(column.column)}</span>'


def _ablation(report: ValidityReport) -> str:
    rows = [
        (
            escape(f"{label.data}: {label.label}"),
            escape(each.profile),
            escape(each.vector),
            _with_interval(each.difference, each.interval, signed=True),
        )
        for label in report.labels
        for each in label.ablation
    ]
    told = "<p>The AUC of the overall without one vector, minus that with it.</p>"
    head = ("set, label", "profile", "without", "difference of AUC")
    return f"<h2>What each vector adds</h2>{told}{_table(head, rows)}"


def _gaming(report: ValidityReport) -> str:
    rows = [
        (
            escape(each.reply if each.is_solved else f"{each.reply} (not solved)"),
            *(_figure(each.overall[profile]) for profile in report.profiles),
        )
        for each in report.gaming
    ]
    told = "<p>The mean overall of cheap replies, beside an honest turn, over eight scenarios.</p>"
    return f"<h2>Gaming</h2>{told}{_table(('reply', *report.profiles), rows)}"


def _constant(report: ValidityReport) -> str:
    rows = [
        (
            escape(each.data),
            escape(each.profile),
            *(_figure(value) for value in (each.constant, each.responses, each.beaten)),
        )
        for each in report.constant
    ]
    head = ("set", "profile", "constant reply", "the set's responses", "share below it")
    told = "<p>One generic question in place of every response: its mean overall.</p>"
    return f"<h2>Constant reply</h2>{told}{_table(head, rows)}"


def _problems(report: ValidityReport) -> str:
    problems = [problem for each in report.data for problem in each.problems]
    listed = "".join(f"<li>{escape(problem)}</li>" for problem in problems)
    return f"<h2>Lines that were left out</h2><ul>{listed}</ul>" if problems else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells of `rows` are markup, those of `head` are text."""
    headings = "".join(f'<th scope="col">{escape(each)}</th>' for each in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{headings}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _auc(column: ColumnFigures | None) -> str:
    return "-" if column is None else _with_interval(column.auc, column.interval)


def _against(column: ColumnFigures | None, other: str) -> str:
    pairs = column.differences if column else ()
    return next((_pair(pair) for pair in pairs if pair.other == other), "-")


def _pair(pair: Paired) -> str:
    told = _with_interval(pair.difference, pair.interval, signed=True)
    kind = pair.verdict if pair.verdict in {"ahead", "loss"} else "quiet"
    return f'<span class="{kind}">{told} {pair.verdict}</span>'


def _with_interval(value: float | None, interval: Interval | None, *, signed: bool = False) -> str:
    if interval is None:
        return _figure(value, signed=signed)
    low, high = (_figure(end, signed=signed) for end in interval)
    return f'{_figure(value, signed=signed)} <span class="quiet">[{low}, {high}]</span>'


def _figure(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.3f}" if signed else f"{value:.3f}"
