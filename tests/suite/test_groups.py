"""Tests of one `xdist_group` run in one process and make their shared parts once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TESTS = 12


def test_tests_of_one_group_share_a_worker(tmp_path: Path):
    body = "\n\n".join(
        f'@pytest.mark.xdist_group("{group}")\n'
        f"def test_{group}_{number}(worker_id):\n"
        f'    print(f"\\nin {group}: {{worker_id}}")'
        for number in range(TESTS)
        for group in ("one", "other")
    )
    (tmp_path / "test_grouped.py").write_text(f"import pytest\n\n{body}\n")

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no"),
            *("-n", "2", "--dist=loadgroup", "-rP", "test_grouped.py"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for group in ("one", "other"):
        workers = re.findall(rf"^in {group}: (\w+)$", done.stdout, re.MULTILINE)
        assert len(workers) == TESTS
        assert len(set(workers)) == 1, f"the group {group} ran in {sorted(set(workers))}"
