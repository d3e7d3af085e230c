"""`socratic-bench trends`: scores over time, through the real command."""

import json

from tests.e2e.command import Terminal

CONFIG = """
models:
  - reference/socratic
repeats: 1
occasion: {occasion}
{more}
"""


def test_points_join_until_the_benchmark_changes(terminal: Terminal) -> None:
    for occasion, more in (("spring", ""), ("summer", ""), ("autumn", "system_prompt: Ask.")):
        config = CONFIG.format(occasion=occasion, more=more)
        terminal.run("run", terminal.write(f"{occasion}.yaml", config))

    [every] = json.loads(terminal.run("trends", "--json").stdout)["models"]
    shown = terminal.run("trends", "reference/socratic").stdout

    assert [point["joins"] for point in every["points"]] == [False, True, False]
    assert every["kind"] == "reference"
    assert "changed: prompt or parameters" in shown
    assert [shown.count(each) for each in ("spring", "summer", "autumn")] == [1, 1, 1]


def test_a_named_date_compares_the_points_on_its_sides(terminal: Terminal) -> None:
    for occasion in ("one", "two", "three", "four"):
        config = CONFIG.format(occasion=occasion, more="")
        terminal.run("run", terminal.write(f"{occasion}.yaml", config))
    [series] = json.loads(terminal.run("trends", "--json").stdout)["models"]
    third = series["points"][2]["created_at"]

    shown = terminal.run("trends", "--changed", third).stdout
    [found] = json.loads(terminal.run("trends", "--changed", third, "--json").stdout)["models"]
    wrong = terminal.run("trends", "--changed", "autumn")

    told = found["date_difference"]
    assert (told["points_before"], told["points_after"], told["difference"]) == (2, 2, 0)
    assert "The same mean before and after" in shown
    assert wrong.returncode == 2
    assert "must be a date such as 2026-11-23" in wrong.stderr
