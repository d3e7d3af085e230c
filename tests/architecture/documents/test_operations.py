"""The operations page gives the retries, delays and deadlines that the code has."""

import importlib
import re
from pathlib import Path

import pytest

from socratic_runner.settings import RunnerProcessSettings

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
ROW = re.compile(r"^\| [^|]+ \| ([\d.,]+) \| `([\w.]+)` \|$", re.MULTILINE)


def seconds_of(name: str) -> float:
    """The value of a constant by its dotted name, or of a setting by its variable."""
    if name.startswith("SOCRATIC_"):
        field = name.removeprefix("SOCRATIC_").lower()
        return float(RunnerProcessSettings.model_fields[field].default)
    module, constant = name.rsplit(".", 1)
    return float(getattr(importlib.import_module(module), constant))


@pytest.mark.parametrize(("written", "name"), ROW.findall(PAGE))
def test_a_delay_is_the_one_that_the_code_has(written: str, name: str) -> None:
    assert float(written.replace(",", "")) == seconds_of(name)


def test_every_row_of_the_tables_is_compared() -> None:
    tables = PAGE.split("## How a message ends")[0]
    rows = [line for line in tables.splitlines() if re.match(r"\| (?!what|---)", line)]
    assert len(rows) == len(ROW.findall(PAGE)) > 30
