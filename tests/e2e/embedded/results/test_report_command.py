"""`socratic-bench report`: one page to share or cite, and a configuration that repeats it."""

import html
import json
import re

import pytest

from tests.e2e.command import Terminal

pytestmark = pytest.mark.xdist_group("a benchmark to report")

CONFIG = """
models:
  - reference/socratic
  - id: reference/lecturer
    name: $x_1$
    price: {input_per_million: 1, output_per_million: 4}
repeats: 1
occasion: spring
name: Two tutors
system_prompt: Ask & <never> tell.
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    terminal = Terminal(tmp_path_factory.mktemp("report"))
    terminal.run("run", terminal.write("benchmark.yaml", CONFIG))
    return terminal


def test_the_page_has_the_leaderboards_figures_and_the_experiments_id(finished: Terminal) -> None:
    done = finished.run("report", "spring", "--out", "tutors.html")

    page = (finished.folder / "tutors.html").read_text("utf-8")
    table = json.loads(finished.run("leaderboard", "--format", "json").stdout)
    assert done.returncode == 0
    assert "Wrote tutors.html." in done.stderr
    assert "<h1>Two tutors</h1>" in page
    for model in table["models"]:
        assert f"<td>{model['overall_score']:.2f}</td>" in page
    assert table["experiments"][0]["manifest_id"] in page
    assert not list(finished.folder.glob("*.part"))


def test_its_configuration_names_the_same_experiment(finished: Terminal) -> None:
    finished.run("report", "spring")
    page = (finished.folder / "report.html").read_text("utf-8")
    [configuration] = re.findall(r"<summary>.*?</summary><pre>(.*?)</pre>", page, re.DOTALL)
    finished.write("again.json", html.unescape(configuration))

    finished.run("run", "again.json", "--store", "sqlite:///again.db")

    first, again = (
        json.loads(finished.run("leaderboard", "--format", "json", *store).stdout)
        for store in ((), ("--store", "sqlite:///again.db"))
    )
    assert again["experiments"][0]["experiment_id"] == first["experiments"][0]["experiment_id"]
    assert [model["overall_score"] for model in again["models"]] == [
        model["overall_score"] for model in first["models"]
    ]


def test_an_unknown_experiment_leaves_no_file(finished: Terminal) -> None:
    done = finished.run("report", "autumn", "--out", "autumn.html")

    assert done.returncode == 2
    assert "there is no experiment 'autumn'" in done.stderr
    assert not (finished.folder / "autumn.html").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ranking"], ["constant reply", "$x_1$ (reference)"]),
        (["trends"], ["$x_1$ (reference)"]),
        (["frontier"], ["Cost of 1,000 responses in USD"]),
        (
            ["compare", "--model", "reference/socratic", "--model", "reference/lecturer"],
            ["overall"],
        ),
    ],
)
def test_a_figure_is_drawn_without_a_browser(
    finished: Terminal, words: list[str], said: list[str]
) -> None:
    done = finished.run("figure", "spring", *words, "--out", "a.svg")
    assert done.returncode == 0, done.stderr
    drawn = html.unescape((finished.folder / "a.svg").read_text("utf-8"))
    assert all(f">{each}<" in drawn for each in (*said, "Socratic Bench 0.1.0, socratic-v1"))


def test_a_figure_of_another_format_is_refused_before_the_work(finished: Terminal) -> None:
    refused = finished.run("figure", "spring", "ranking", "--out", "a.jpg")
    assert refused.returncode == 2
    assert "a.jpg must end with .pdf, .svg or .png" in refused.stderr
