"""The glossary explains words that the code uses, and each of them once."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WORDS = re.findall(r"^- \*\*([^*]+)\*\*", (ROOT / "GLOSSARY.md").read_text(), re.MULTILINE)
CODE = "\n".join(
    path.read_text()
    for folder in ("shared", "services", "deploy/cli")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not {"node_modules", "build", ".venv"} & set(path.parts)
)


def test_no_word_is_explained_twice():
    assert [word for word, count in Counter(map(str.lower, WORDS)).items() if count > 1] == []


@pytest.mark.parametrize("word", WORDS)
def test_the_code_uses_each_word(word: str):
    spelled = "[ _-]?".join(re.split(r"[ -]", word))
    assert re.search(spelled, CODE, re.IGNORECASE), f"no code says {word!r}: remove it"
