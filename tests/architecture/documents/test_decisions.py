"""Each decision has a number of its own, and every cited decision exists."""

import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
DECISIONS = (ROOT / "DECISIONS.md").read_text()
NUMBERED = re.findall(r"^\*\*(D-\d{3}) · \d{4}-\d\d-\d\d · ", DECISIONS, re.MULTILINE)
INDEXED = re.findall(r"^- (D-\d{3}): ", DECISIONS, re.MULTILINE)


def test_no_number_stands_for_two_decisions():
    assert [number for number, count in Counter(NUMBERED).items() if count > 1] == []


def test_the_index_lists_every_numbered_decision_once_in_order():
    assert sorted(NUMBERED) == INDEXED


def test_every_decision_that_is_cited_is_there():
    search = ["git", "grep", "-ohE", "--untracked", r"\bD-[0-9]{3}\b", "--", "*.py", "*.md"]
    cited = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(cited.split()) - set(NUMBERED) == set()
