"""An independent implementation of `socratic-v1`: its formulas, with regular expressions.

Slow and plain on purpose: it shares no code with the scorer, and the two must agree.
"""

from __future__ import annotations

import re

EXPLORATORY = ["consider", "might", "depends", "perhaps", r"what\s+if", "could"]
DIRECTIVE = ["should", "must", r"the\s+answer\s+is", "always", "never"]


def _count(markers: list[str], text: str) -> int:
    return sum(
        len(re.findall(rf"(?<!\w){marker}(?!\w)", text, re.IGNORECASE)) for marker in markers
    )


def reference_scores(text: str, tokens: float | None = None) -> dict[str, float]:
    if tokens is None:
        tokens = len(re.findall(r"\S+", text)) * 1.3
    asking, telling = _count(EXPLORATORY, text), _count(DIRECTIVE, text)
    ratio = 0.0 if asking + telling == 0 else (asking - telling) / (asking + telling)
    scores = {
        "verbosity": 1 - min(tokens / 500, 1),
        "exploratory": (ratio + 1) / 2,
        "interrogative": 1.0 if text.strip()[-1:] == "?" else 0.0,
    }
    return {**scores, "overall": sum(scores.values()) / 3}
