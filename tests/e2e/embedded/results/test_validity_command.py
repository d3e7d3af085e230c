"""`socratic-bench validity`: figures beside people's labels, through the real command."""

import json

import pytest

from tests.e2e.command import Terminal
from tests.unit.validity.labelled_sets import encoded, lines


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    terminal.write("mine.jsonl", b"".join(encoded(lines())).decode())
    return terminal


def test_it_writes_a_page_and_data(terminal):
    done = terminal.run("validity", "mine.jsonl", "--out", "report.html", "--resamples", 20)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Wrote the figures of 24 labelled responses to report.html.\n"
    assert "mine: asks" in (terminal.folder / "report.html").read_text()

    done = terminal.run("validity", "mine.jsonl", "--out", "report.json", "--resamples", 20)
    assert done.returncode == 0
    report = json.loads((terminal.folder / "report.json").read_text())
    assert report["labels"][0]["n"] == 24
    assert report["profiles"] == ["socratic-v1", "socratic-v2"]


def test_a_bad_line_is_named_and_the_rest_is_in_the_report(terminal):
    with (terminal.folder / "mine.jsonl").open("a") as file:
        file.write('{"text": 1}\n')
    done = terminal.run("validity", "mine.jsonl", "--out", "report.json", "--resamples", 20)
    assert done.returncode == 1
    assert "Error: mine.jsonl, line 25: text: must be text" in done.stderr
    assert (terminal.folder / "report.json").exists()


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (("--out", "report.txt"), "--out: report.txt must end with .html or .json"),
        (("--out", "no/report.html"), "--out: no/report.html cannot be written"),
        (("--out", "r.json", "--profile", "nobody"), "unknown scorer profile 'nobody'"),
    ],
)
def test_wrong_use_is_said_in_a_sentence(terminal, words, mistake):
    done = terminal.run("validity", "mine.jsonl", "--resamples", 20, *words)
    assert done.returncode == 2
    assert mistake in done.stderr
