"""The example of a page, installed as others would install it, and served by the real command."""

import re
import subprocess
import sys
import urllib.request

import pytest

from tests.built_pages import require_pages
from tests.waiting import PATIENCE

COMMAND = [sys.executable, "-c", "from socratic_cli.cli import main; main()"]


pytestmark = pytest.mark.xdist_group("installed examples")


def got(address: str) -> str:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return answer.read().decode()


def test_the_command_serves_the_installed_page_in_the_frame_of_its_own(installed, tmp_path):
    require_pages()
    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--store", f"sqlite:///{tmp_path}/benchmark.db"],
        env=installed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as serving:
        try:
            said = ""
            while not (address := re.search(r"http://127\.0\.0\.1:\d+", said)):
                line = serving.stdout.readline()
                assert line, f"serve ended: {said}"
                said += line
            page = got(f"{address[0]}/costs.html")
            ranking = got(f"{address[0]}/research.html")
            script = got(f"{address[0]}/assets/costs/page.js")
        finally:
            serving.terminate()

    assert "What a run costs" in page
    assert '<a href="costs.html" aria-current="page">Costs</a>' in page
    assert '<a href="costs.html">Costs</a>' in ranking
    assert "/api/cost-analysis" in script
