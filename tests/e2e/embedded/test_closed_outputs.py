"""An output that is closed or full spoils no work: one sentence, and the exit code of the work."""

import subprocess

import pytest

from tests.e2e.command import Terminal
from tests.processes.forked import COMMAND

CONFIG = """
models: [reference/socratic]
repeats: 1
scenarios: [{id: a, dimension: student, prompt: Why?}]
"""


def shell(terminal: Terminal, words: str) -> subprocess.CompletedProcess[str]:
    """Have a shell start the command: only a shell closes what a process begins with."""
    return subprocess.run(
        ["sh", "-c", f"exec {COMMAND} {words}"],
        cwd=terminal.folder,
        env=terminal.environ(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("run b.yaml >&-", 0, "standard output took not everything: it is closed"),
        ("run b.yaml 2>&-", 0, ""),
        ("leaderboard >/dev/full", 1, "standard output took not everything: No space left"),
    ],
)
def test_an_output_that_takes_nothing_is_told_in_a_sentence(tmp_path, words, code, told):
    terminal = Terminal(tmp_path)
    terminal.write("b.yaml", CONFIG)
    if not words.startswith("run"):
        assert terminal.run("run", "b.yaml").returncode == 0
    done = shell(terminal, words)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert told in done.stderr
    assert terminal.run("leaderboard").returncode == 0
