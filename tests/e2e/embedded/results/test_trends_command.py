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


def test_one_command_takes_old_experiments_into_the_series_of_a_new_profile(
    terminal: Terminal,
) -> None:
    for occasion in ("one", "two"):
        config = CONFIG.format(occasion=occasion, more="")
        terminal.run("run", terminal.write(f"{occasion}.yaml", config))

    none = terminal.run("trends", "--profile", "socratic-v2")
    done = terminal.run("rescore", "all", "--profile", "socratic-v2", "--json")
    [series] = json.loads(terminal.run("trends", "--profile", "socratic-v2", "--json").stdout)[
        "models"
    ]

    assert none.returncode != 0
    assert [json.loads(line)["responses"] for line in done.stdout.splitlines()] == [15, 15]
    assert [point["title"] for point in series["points"]] == ["one", "two"]
    assert [point["joins"] for point in series["points"]] == [False, True]
    assert all(point["overall_score"] is not None for point in series["points"])


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
