"""A gate's checks as JUnit XML, the form that CI systems show as tests.

A test suite is an experiment, a test case a check of a model. The attributes are those that
Jenkins, GitLab and GitHub's reporters read: `tests`, `failures`, `classname`, `name`, `message`.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, indent, tostring

from socratic_bench.reporting.formats import printable
from socratic_bench.reporting.gate.gate_report import GateReport


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
