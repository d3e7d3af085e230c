"""`make demo` shows the table of the README."""

import re
from importlib import resources
from pathlib import Path

README = Path(__file__).parents[3] / "README.md"
LOCAL = "SmolLM2 135M"


def table_of(text):
    """The rows of a table as lists of cells without the rank, and the lines below it, unwrapped."""
    table, _, legend = text.partition("\n\n")
    rows = [re.split(r"  +", line[2:].strip()) for line in table.splitlines()]
    return rows, " ".join(legend.split())


def test_the_readme_shows_what_the_demo_prints(terminal):
    shown = README.read_text().partition("on two cores:\n\n```\n")[2].partition("\n```\n")[0]
    # The reference tutors alone: the rows of the real model depend on the processor.
    config = resources.files("socratic_cli.configs") / "demo-without-local.yaml"
    done = terminal.run("run", terminal.write("demo.yaml", config.read_text()))
    rows, legend = table_of(shown)
    printed_rows, printed_legend = table_of(done.stdout.strip("\n"))
    assert [row for row in rows if LOCAL not in row[0]] == printed_rows
    assert legend == printed_legend
    local = [row[0] for row in rows if LOCAL in row[0]]
    assert local == [f"{LOCAL}, few-shot", LOCAL]
