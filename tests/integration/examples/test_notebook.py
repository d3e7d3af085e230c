"""The example for notebooks, run as its readers run it."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "notebook.py"


def test_it_prints_the_leaderboard_and_an_answer(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    first, second, answer = done.stdout.splitlines()[:3]
    assert (first.split()[0], second.split()[0]) == ("reference/socratic", "reference/lecturer")
    assert float(first.split()[1]) > float(second.split()[1])
    assert answer.startswith("reference/lecturer, student-")
    assert done.stderr == ""
