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
