"""`make demo` shows the table of the README."""

import re
from importlib import resources
from pathlib import Path

from socratic_bench.results.leaderboard.text_formats import TIES

README = Path(__file__).parents[3] / "README.md"
LOCAL = "SmolLM2 135M"


def table_of(text):
    """The rows of a table as lists of cells without the rank, and the lines below it, unwrapped."""
    table, _, legend = text.partition("\n\n")
    heading, *rows = (re.split(r"  +", line.strip()) for line in table.splitlines())
    # The real model's rank, and whether two of them share one, depend on the processor, too.
    told = " ".join(legend.split()).replace(f"{TIES} ", "")
    return [heading, *(row[1:] for row in rows)], told


def test_the_readme_shows_what_the_demo_prints(terminal):
    shown = README.read_text().partition("after the set-up:\n\n```\n")[2].partition("\n```\n")[0]
    # The reference tutors alone: the rows of the real model depend on the processor.
    config = resources.files("socratic_cli.configs") / "demo-without-local.yaml"
    done = terminal.run("run", terminal.write("demo.yaml", config.read_text()))
    rows, legend = table_of(shown)
    printed_rows, printed_legend = table_of(done.stdout.strip("\n"))
    assert [row for row in rows if LOCAL not in row[0]] == printed_rows
    assert legend == printed_legend
    local = [row[0] for row in rows if LOCAL in row[0]]
    assert local == [f"{LOCAL}, few-shot", LOCAL]
