"""Each decision has a number of its own, and every cited decision exists."""

import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_cited_decision_is_defined_exactly_once():
    defined = re.findall(r"^\*\*(D-\d{3}) · ", (ROOT / "DECISIONS.md").read_text(), re.MULTILINE)
    search = ["git", "grep", "-ohIE", "--untracked", r"\bD-[0-9]{3}\b", "--", "."]
    cited = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [number for number, count in Counter(defined).items() if count > 1] == []
    assert set(cited.split()) - set(defined) == set()
