"""The figures that this project publishes, as the command wrote them (docs/validity.md)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from socratic_bench.reporting.validity.report import ValidityReport


@cache
def published_figures() -> ValidityReport:
    """Return the published report, in its short form."""
    text = files("socratic_bench.reporting.validity").joinpath("figures.json").read_bytes()
    return ValidityReport.model_validate_json(text)
