"""The leaderboard shows by default what belongs together, and a pin decides what that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.command import Terminal

FULL = "models: [reference/socratic, reference/lecturer]\nrepeats: 2\nname: Full\n"
PILOT = "models: [reference/socratic]\nrepeats: 1\nname: Pilot\nsystem_prompt: Ask one question.\n"


def _shown(terminal: Terminal, *options: str) -> dict[str, Any]:
    done = terminal.run("leaderboard", "--format", "json", *options)
    board: dict[str, Any] = json.loads(done.stdout)
    return board


def test_a_pilot_replaces_no_result_until_it_is_pinned(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    for name, config in (("full", FULL), ("pilot", PILOT)):
        done = terminal.run("run", terminal.write(f"{name}.yaml", config))
        assert done.returncode == 0, done.stderr

    by_default = _shown(terminal)
    assert [each["name"] for each in by_default["experiments"]] == ["Full"]
    assert [each["reason"] for each in by_default["left_out"]] == ["pilot"]
    table = terminal.run("leaderboard", "--experiment", "all").stdout
    assert "Pilot" in table
    assert "2 sets of test conditions" in " ".join(table.split())

    pinned = terminal.run("pin", "Pilot")
    assert pinned.returncode == 0, pinned.stderr
    assert "is pinned" in pinned.stderr
    assert [each["name"] for each in _shown(terminal)["experiments"]] == ["Pilot"]

    assert "no longer pinned" in terminal.run("unpin", "Pilot").stderr
    assert "not pinned" in terminal.run("unpin", "Pilot").stderr
    assert _shown(terminal) == by_default
    unknown = terminal.run("pin", "nowhere")
    assert (unknown.returncode, "there is no experiment 'nowhere'" in unknown.stderr) == (2, True)


def test_a_dimension_models_and_a_time_filter_the_table(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.run("run", terminal.write("full.yaml", FULL))
    model = _shown(terminal)["models"][0]["model_id"]

    own = _shown(terminal, "--dimension", "ethical", "--model", model, "--since", "2026-01-01")
    table = terminal.run("leaderboard", "--dimension", "ethical").stdout
    none = terminal.run("leaderboard", "--until", "2026-01-01")
    wrong = [
        terminal.run("leaderboard", *words)
        for words in (("--dimension", "ethics"), ("--model", "x"), ("--since", "soon"))
    ]

    assert [row["model_id"] for row in own["models"]] == [model]
    assert own["dimensions"] == ["ethical"]
    assert "Filtered: dimension ethical." in " ".join(table.split())
    assert none.stdout == ""
    assert none.stderr.strip().endswith("No experiment fits.")
    assert [each.returncode for each in wrong] == [2, 2, 2]
    assert 'did you mean "ethical"?' in wrong[0].stderr
    assert "a date such as" in wrong[2].stderr
