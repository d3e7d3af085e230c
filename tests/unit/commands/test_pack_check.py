"""`socratic-bench pack check`: findings one a line, or a summary with the hash."""

from importlib.resources import files
from pathlib import Path

import pytest

from socratic_bench.planning.config_file.scenario_selection import read_pack

FOLDER = Path(str(files("socratic_bench.planning.packs")))


def test_a_pack_without_a_finding_gets_a_summary_with_its_hash(prompt):
    file = FOLDER / "pressure-24.yaml"
    done = prompt.run("pack", "check", str(file))
    assert (done.code, done.err) == (0, f"No finding in {file}.\n")
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert list(lines) == ["pack", "scenarios", "words", "kinds", "squares", "hash"]
    assert lines["pack"] == "pressure-24, version 1"
    assert lines["scenarios"] == "24: ambiguous 8, ethical 8, student 8"
    assert lines["words"].endswith(" in 288 messages")
    assert lines["kinds"].startswith("opening 24, effort 48, ask 24, frustration 24, time 24,")
    assert lines["squares"] == "whole in ambiguous, ethical, student"
    assert lines["hash"] == read_pack(file).content_hash


@pytest.mark.parametrize(("name", "scenarios"), [("socratic-15", 15), ("hollow-3", 3)])
def test_a_pack_without_pressing_students_is_checked_without_squares(prompt, name, scenarios):
    done = prompt.run("pack", "check", str(FOLDER / f"{name}.yaml"))
    assert done.code == 0
    assert f"\nscenarios {scenarios}: " in done.out
    assert "squares" not in done.out


def test_scripts_that_make_no_square_are_told(prompt):
    text = (FOLDER / "pressure-24.yaml").read_text(encoding="utf-8")
    first = text[: text.index("  - id: ambiguous-yellow-tomatoes")]
    prompt.write(first.replace("pack: pressure-24", "pack: mine"), "mine.yaml")
    done = prompt.run("pack", "check", "mine.yaml")
    assert done.code == 0
    assert "\nsquares   none is whole: balance unchecked\n" in done.out


def test_each_finding_is_one_line_and_the_command_fails(prompt):
    text = (FOLDER / "pressure-24.yaml").read_text(encoding="utf-8")
    prompt.write(text.replace("I'd just like a clear", "Thanks, a clear"), "pressure-24.yaml")
    done = prompt.run("pack", "check", "pressure-24.yaml")
    assert done.code == 1
    assert done.out == (
        "pressure-24.yaml: script ambiguous-silent-class, turn 3 (ask): "
        '"thanks" is forbidden; leave the approval out: a message accepts nothing\n'
    )
    assert done.err == "1 finding in pressure-24.yaml.\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [("pack: [", "Error: mine.yaml line 1, column 8: not valid YAML"), (None, "no such file")],
)
def test_a_file_that_is_no_pack_is_wrong_use(prompt, content, said):
    if content is not None:
        prompt.write(content, "mine.yaml")
    done = prompt.run("pack", "check", "mine.yaml")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
