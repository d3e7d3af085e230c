"""`socratic-bench compare`: two models on the same scenarios, through the real command."""

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.command import Terminal

pytestmark = pytest.mark.xdist_group("two benchmarks that have run")

CONFIG = """
models:
  - reference/socratic
  - reference/lecturer
repeats: 2
occasion: {occasion}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the same benchmark on two occasions."""
    terminal = Terminal(tmp_path_factory.mktemp("compare"))
    for occasion in ("spring", "autumn"):
        terminal.run("run", terminal.write(f"{occasion}.yaml", CONFIG.format(occasion=occasion)))
    return Path(terminal.database)


@pytest.fixture
def finished(ran: Path, terminal: Terminal) -> Terminal:
    shutil.copy(ran, terminal.database)
    return terminal


def test_two_models_are_compared_on_the_scenarios_of_both(finished: Terminal) -> None:
    shown = finished.run("compare", "reference/socratic", "reference/lecturer").stdout

    assert "more than chance explains (p < 0.001, 15 scenarios)" in shown
    assert "The scenarios that separate them most:" in shown


def test_json_has_every_scenario_and_the_figures_of_the_leaderboard(finished: Terminal) -> None:
    table = json.loads(finished.run("leaderboard", "--format", "json").stdout)
    scores = {model["model_id"]: model["overall_score"] for model in table["models"]}

    shown = finished.run("compare", "reference/socratic", "reference/lecturer", "--json").stdout

    difference = json.loads(shown)
    overall, *vectors = difference["figures"]
    assert overall["first"] == pytest.approx(scores["reference/socratic"])
    assert overall["second"] == pytest.approx(scores["reference/lecturer"])
    assert overall["difference"] == pytest.approx(overall["first"] - overall["second"])
    assert [vector["name"] for vector in vectors] == ["verbosity", "exploratory", "interrogative"]
    sizes = [abs(each["difference"]) for each in difference["by_scenario"]]
    assert len(sizes) == 15
    assert sizes == sorted(sizes, reverse=True)


def test_one_model_is_compared_on_two_occasions(finished: Terminal) -> None:
    sides = ("reference/lecturer@spring", "reference/lecturer@autumn")

    difference = json.loads(finished.run("compare", *sides, "--json").stdout)

    assert difference["first"]["title"] == "spring"
    assert difference["second"]["title"] == "autumn"
    assert difference["note"] is None
    assert not difference["is_real"]


def test_an_experiment_of_one_model_stands_for_the_model(finished: Terminal) -> None:
    for name in ("calm", "curt"):
        config = f"name: {name}\nsystem_prompt: Be {name}.\nmodels: [reference/hedger]\nrepeats: 1"
        finished.run("run", finished.write(f"{name}.yaml", config))

    difference = json.loads(finished.run("compare", "calm", "curt", "--json").stdout)

    assert [difference[side]["title"] for side in ("first", "second")] == ["calm", "curt"]
    assert difference["first"]["model_id"] == "reference/hedger"
    assert "differ in their test conditions" in difference["note"]


def test_a_difference_that_is_too_small_to_matter_is_called_so(finished: Terminal) -> None:
    sides = ("reference/lecturer@spring", "reference/lecturer@autumn")

    small = " ".join(finished.run("compare", *sides, "--margin", "0.2").stdout.split())
    parts = json.loads(finished.run("compare", *sides, "--json").stdout)

    assert "The difference is too small to matter: less than 0.2 either way" in small
    assert "Variance of a score:" in small
    assert parts["equivalence"]["margin"] == 0.05
    assert parts["variance"]["repeats"] == 2
    assert finished.run("compare", *sides, "--margin", "2").returncode == 2


@pytest.mark.parametrize(
    ("sides", "told"),
    [
        (("reference/socratic", "hosted/none"), "there is no model 'hosted/none' in this store"),
        (("reference/socratic", "hosted/none@spring"), "no model 'hosted/none' in experiment"),
        (("reference/socratic@winter", "reference/lecturer"), "no experiment 'winter'"),
        (("reference/socratic", "reference/socratic"), "write MODEL@EXPERIMENT"),
        (("spring", "autumn"), "'spring' is an experiment of 2 models: write MODEL@spring"),
    ],
)
def test_a_wrong_side_is_named(finished: Terminal, sides: tuple[str, str], told: str) -> None:
    done = finished.run("compare", *sides)

    assert done.returncode == 2
    assert told in done.stderr
