"""A gate as JUnit XML for CI systems, and as Markdown for a pull request.

In JUnit XML a test suite is an experiment, a test case a check of a model. The attributes are those
that Jenkins, GitLab and GitHub's reporters read: `tests`, `failures`, `classname`, `name`,
`message`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element, indent, tostring

from socratic_bench.domain.experiment.outline import experiment_title
from socratic_bench.results.formats import figure, moment, printable, signed
from socratic_bench.results.gate.falls import Check, ModelFall, ScenarioFall
from socratic_bench.results.gate.gate_report import GateReport
from socratic_bench.results.leaderboard.text_formats import markdown_of, markdown_row


def junit_text(report: GateReport) -> str:
    """Return an XML document; what XML cannot hold in a name is replaced."""
    suite = Element(
        "testsuite",
        name=printable(f"Socratic Bench {report.experiment_id}"),
        tests=str(len(report.checks)),
        failures=str(sum(not check.passed for check in report.checks)),
        errors="0",
        skipped="0",
    )
    for check in report.checks:
        case = Element(
            "testcase", classname=printable(check.model_id), name=printable(check.name), time="0"
        )
        numbers = {"value": check.value, "threshold": check.threshold}
        if known := {name: number for name, number in numbers.items() if number is not None}:
            properties = Element("properties")
            for name, number in known.items():
                properties.append(Element("property", name=name, value=f"{number:.10g}"))
            case.append(properties)
        told = Element("system-out" if check.passed else "failure")
        told.text = printable(check.detail)
        if not check.passed:
            told.set("message", printable(check.detail))
            told.set("type", "threshold")
        case.append(told)
        suite.append(case)
    if report.notes:
        noted = Element("system-out")
        noted.text = printable("\n".join(report.notes))
        suite.append(noted)
    root = Element("testsuites")
    root.append(suite)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


WIDTH: Final = 96
"""Characters of a line of a model's text: a code block breaks no lines by itself."""


def gate_markdown(report: GateReport) -> str:
    """Return the gate as Markdown. A model's text stands in code blocks: it is no markup."""
    failed = sum(not check.passed for check in report.checks)
    verdict = "passed" if report.passed else f"FAILED: {failed} of {len(report.checks)} checks"
    lines = [
        f"## Socratic Bench gate {verdict}",
        "",
        _experiment(report),
        "",
        *_changes(report),
        *_checks(report),
    ]
    for fallen in report.falls:
        lines += _worst(fallen)
    lines += [f"- {markdown_of(note)}" for note in report.notes]
    return "\n".join(lines).rstrip() + "\n"


def title(name: str | None, occasion: str | None, experiment_id: str) -> str:
    """Return the name, the occasion and the id of an experiment in one phrase."""
    named = experiment_title(name, occasion)
    return f"{printable(named)} ({experiment_id})" if named else experiment_id


def _experiment(report: GateReport) -> str:
    name = title(report.experiment_name, report.occasion, report.experiment_id)
    told = f"Experiment {markdown_of(name)}, {moment(report.created_at)}"
    if not report.falls:
        return told + "."
    baseline = report.falls[0].baseline
    before = title(baseline.title, None, baseline.experiment_id)
    more = report.falls[0].experiments - 1
    others = f" and {more} before it" if more else ""
    return f"{told}, against {markdown_of(before)}, {moment(baseline.created_at)}{others}."


def _changes(report: GateReport) -> Iterator[str]:
    if not report.falls:
        return
    yield from (_told(each) for each in report.falls)
    yield ""
    yield "Scores run from 0 to 1, higher is more Socratic; Δ is the change since the baseline."
    yield ""
    vectors = list(dict.fromkeys(name for each in report.falls for name in each.vectors))
    heads = ["model", "before", "now", "change", "95 % interval of the change", "by chance?"]
    yield markdown_row([*heads, *(f"Δ {markdown_of(name)}" for name in vectors), "scenarios"])
    yield markdown_row([":---", *["---:"] * 3, ":---:", ":---", *["---:"] * (len(vectors) + 1)])
    for each in report.falls:
        yield markdown_row(
            [
                markdown_of(each.model_name),
                figure(each.before),
                figure(each.now),
                f"**{signed(each.change)}**",
                "–" if each.interval is None else " to ".join(map(signed, each.interval)),
                _chance(each),
                *(signed(each.vectors.get(name)) for name in vectors),
                str(each.scenarios),
            ]
        )
    yield ""


def _told(fallen: ModelFall) -> str:
    """Say in one line what fell, by how much, and where."""
    name, change = markdown_of(fallen.model_name), fallen.change
    if change is None:
        return f"- **{name}** has no scenario with a score in both experiments."
    if not change:
        return f"- **{name}** has the same score as before, {figure(fallen.now)}."
    verb = "fell" if change < 0 else "rose"
    parts = sorted(
        (each for each in fallen.vectors.items() if each[1] and each[1] * change > 0),
        key=lambda each: -abs(each[1] or 0.0),
    )
    most = ", ".join(f"{markdown_of(vector)} {signed(by)}" for vector, by in parts[:2])
    where = f", on {fallen.fell} of {fallen.scenarios} scenarios" if change < 0 else ""
    return (
        f"- **{name}** {verb} by {abs(change):.2f}, from {figure(fallen.before)} to "
        f"{figure(fallen.now)}{where}{f' ({most})' if most else ''}."
    )


def _chance(fallen: ModelFall) -> str:
    if fallen.interval is None:
        return "too few scenarios to tell"
    if not fallen.change:
        return "equal, which proves no equality"
    return "no: more than chance explains" if fallen.is_real else "may be chance"


def _checks(report: GateReport) -> Iterator[str]:
    yield markdown_row(["", "model", "check", "figures"])
    yield markdown_row([":---"] * 4)
    for check in sorted(report.checks, key=lambda check: check.passed):
        yield markdown_row(
            [
                "ok" if check.passed else "**FAILED**",
                *(markdown_of(each) for each in (check.model_id, check.name, check.detail)),
            ]
        )
    yield ""


def _worst(fallen: ModelFall) -> Iterator[str]:
    told = [each for each in fallen.worst if each.answer_now]
    if not told:
        return
    more = ", the worst first" if fallen.fell <= len(told) else f", the {len(told)} worst"
    yield f"### Where {markdown_of(fallen.model_name)} fell: {fallen.fell} scenarios{more}"
    yield ""
    for each in told:
        name, before, now = markdown_of(each.scenario_id), figure(each.before), figure(each.now)
        yield f"**{name}**: {before} before, {now} now"
        yield ""
        yield from _texts(each)


def _texts(scenario: ScenarioFall) -> Iterator[str]:
    for name, text in (
        ("student", scenario.student),
        ("before", scenario.answer_before),
        ("now", scenario.answer_now),
    ):
        if text:
            yield f"> **{name}**"
            yield from _quoted(text)
            yield ""


def _quoted(text: str) -> Iterator[str]:
    """Yield a text as a code block in a quotation, whose lines no command of a runner begins."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"> {fence}text"
    for line in text.splitlines():
        for piece in textwrap.wrap(printable(line), WIDTH, break_on_hyphens=False) or [""]:
            yield f"> {piece}"
    yield f"> {fence}"


def gate_annotations(report: GateReport) -> str:
    """Return GitHub's workflow commands: an error for each failed check, else one notice."""
    name = title(report.experiment_name, report.occasion, report.experiment_id)
    failed = [check for check in report.checks if not check.passed]
    lines = [f"::error title={_property(_named(check))}::{_data(check.detail)}" for check in failed]
    if not failed:
        passed = f"{len(report.checks)} checks passed: {name}"
        lines = [f"::notice title=Socratic Bench gate::{_data(passed)}"]
    return "\n".join(lines) + "\n"


def _named(check: Check) -> str:
    return f"{check.model_id}: {check.name}" if check.model_id else check.name


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
