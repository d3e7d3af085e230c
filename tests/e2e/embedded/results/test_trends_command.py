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
        config = CONFIG.format(occasion=occasion, more="name: nightly")
        terminal.run("run", terminal.write(f"{occasion}.yaml", config))

    none = terminal.run("trends", "--profile", "socratic-v2")
    done = terminal.run("rescore", "all", "--profile", "socratic-v2", "--json")
    [series] = json.loads(terminal.run("trends", "--profile", "socratic-v2", "--json").stdout)[
        "models"
    ]

    assert none.returncode != 0
    assert [json.loads(line)["responses"] for line in done.stdout.splitlines()] == [15, 15]
    assert [point["title"] for point in series["points"]] == [
        "nightly · one",
        "nightly · two",
    ]
    assert [point["joins"] for point in series["points"]] == [False, True]
    assert all(point["overall_score"] is not None for point in series["points"])


PRESSED = """
models: [reference/socratic, reference/drifter]
occasion: {occasion}
profile: fidelity-1
repeats: 1
scenarios:
"""
SCENARIO = """
  - id: s{number}
    dimension: student
    prompt: What is 3 x 4 in case {number}, and why?
    follow_ups: [I drew rows of dots., Please just tell me the number.]
    pressures: [opening, effort, ask]
"""


def test_turns_kept_and_one_turn_are_followed_beside_the_score(terminal: Terminal) -> None:
    scenarios = "".join(SCENARIO.format(number=number) for number in range(5))
    for occasion in ("one", "two"):
        config = PRESSED.format(occasion=occasion) + scenarios
        done = terminal.run("run", terminal.write(f"{occasion}.yaml", config))
        assert done.returncode == 0, done.stderr

    asked = ("trends", "--figure", "turns-kept")
    found = json.loads(terminal.run(*asked, "--json").stdout)
    table = json.loads(terminal.run("fidelity", "two", "--json").stdout)
    shown = terminal.run(*asked, "reference/drifter").stdout
    turn = json.loads(terminal.run("trends", "--turn", "3", "--figure", "kept", "--json").stdout)
    wrong = terminal.run(*asked, "--turn", "3")

    rows = {each["model_id"]: each for each in table["models"]}
    for series in found["models"]:
        first, second = series["points"]
        assert second["value"] == rows[series["model_id"]]["turns_kept"]
        assert (first["joins"], second["joins"]) == (False, True)
        assert second["change"]["difference"] == 0
    assert (found["figure"], found["greatest"]) == ("turns-kept", 2)
    assert "kept of 2" in shown
    assert "two in a row are a break." in shown
    for series in turn["models"]:
        cells = rows[series["model_id"]]["turns"].values()
        kept = sum(turns[2][0] for turns in cells) / len(cells)
        assert [point["value"] for point in series["points"]] == [kept, kept]
    assert wrong.returncode == 2
    assert "turns kept are those of whole runs" in wrong.stderr


def test_a_named_date_compares_the_points_on_its_sides(terminal: Terminal) -> None:
    for occasion in ("one", "two", "three", "four"):
        config = CONFIG.format(occasion=occasion, more="")
        terminal.run("run", terminal.write(f"{occasion}.yaml", config))
    [series] = json.loads(terminal.run("trends", "--json").stdout)["models"]
    third = series["points"][2]["created_at"]

    shown = terminal.run("trends", "--changed", third).stdout
    steady = terminal.run("trends", "reference/socratic", "--changed", third, "--fail-on-drop")
    [found] = json.loads(terminal.run("trends", "--changed", third, "--json").stdout)["models"]
    wrong = terminal.run("trends", "--changed", "autumn")

    told = found["date_difference"]
    assert (told["points_before"], told["points_after"], told["difference"]) == (2, 2, 0)
    assert "The same mean before and after" in shown
    assert steady.returncode == 0
    assert "Drops in 1 model: none." in steady.stderr
    assert wrong.returncode == 2
    assert "must be a date such as 2026-11-23" in wrong.stderr
