"""The checks of a gate as a table for people."""

from __future__ import annotations

from rich.console import RenderableType

from socratic_bench.reporting.gate.gate_report import GateReport
from socratic_cli.display.terminal import name_of
from socratic_cli.tables.fitting import Column, FittingTable

_COLUMNS = (
    Column("", "left"),
    Column("model", "left", is_name=True),
    Column("check", "left"),
    Column("figures", "left", folds=True),
)


def gate_table(report: GateReport) -> RenderableType:
    """Make a table with a row for each check, the failed ones first."""
    rows = [
        ("ok" if check.passed else "FAILED", name_of(check.model_id), check.name, check.detail)
        for check in sorted(report.checks, key=lambda check: check.passed)
    ]
    return FittingTable(_COLUMNS, rows, "use --json")
