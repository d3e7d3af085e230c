"""`socratic-bench compare-profiles`: two profiles on the same responses, through the command."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.e2e.command import Terminal

CONFIG = """
name: <first> & one
models: [reference/socratic, reference/lecturer, reference/faulty]
repeats: 1
"""
PROFILES = ("socratic-v1", "socratic-v2")


@pytest.fixture
def scored_twice(terminal: Terminal) -> Terminal:
    done = terminal.run("run", terminal.write("b.yaml", CONFIG))
    assert done.returncode == 0, done.stderr
    assert terminal.run("rescore", "exp-", "--profile", "socratic-v2").returncode == 0
    return terminal


def test_two_profiles_are_compared_in_a_table_in_json_and_on_a_page(
    scored_twice: Terminal, tmp_path: Path
) -> None:
    words = ("compare-profiles", *PROFILES, "--experiment", "exp-")
    table = scored_twice.run(*words, "--out", "report.html")
    found = json.loads(scored_twice.run(*words, "--format", "json").stdout)
    export = scored_twice.run("export", "exp-").stdout.splitlines()
    scores = [each["overall"] for each in map(json.loads, export) if each["overall"] is not None]

    [overall] = found["figures"]
    assert overall["pairs"] == found["responses"] == len(overall["points"])
    assert found["responses"] + found["only_first"] == len(scores)
    if not found["only_first"]:
        assert overall["first_mean"] == pytest.approx(sum(scores) / len(scores))
    difference = overall["difference"]
    assert difference["mean"] == pytest.approx(overall["first_mean"] - overall["second_mean"])
    assert difference["low"] < difference["mean"] < difference["high"]
    assert -1 <= overall["concordance"] <= overall["spearman"] + 0.5 <= 1.5
    assert {each["model_id"]: each["first_rank"] for each in found["models"]} == {
        "reference/socratic": 1,
        "reference/faulty": 2,
        "reference/lecturer": 3,
    } or len(found["models"]) == 3
    assert "Spearman" in table.stdout
    page = (tmp_path / "report.html").read_text()
    assert page.count("<circle") == overall["pairs"]
    [saved] = re.findall(r'href="data:image/svg\+xml;base64,([^"]+)"', page)
    svg = ET.fromstring(base64.b64decode(saved))
    assert len(svg.findall(".//{*}circle")) == overall["pairs"]
    assert not any("class" in mark.attrib for mark in svg.iter())
    assert found["experiment_id"] in "".join(svg.itertext())
    assert "&lt;first&gt; &amp; one" in page
    assert "<first>" not in page
    assert "<script" not in page


def test_one_profile_and_one_without_scores_are_refused(terminal: Terminal) -> None:
    terminal.run("run", terminal.write("b.yaml", CONFIG))
    same = terminal.run("compare-profiles", "socratic-v1", "socratic-v1", "--experiment", "exp-")
    missing = terminal.run("compare-profiles", *PROFILES, "--experiment", "exp-")
    assert (same.returncode, missing.returncode) == (2, 2)
    assert "compared with itself" in same.stderr
    assert "--profile socratic-v2" in missing.stderr
