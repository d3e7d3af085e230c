"""An assertion for promptfoo: is the answer of a test Socratic enough?

Copy it beside your `promptfooconfig.yaml`; the one here shows its use. Let PROMPTFOO_PYTHON name a
Python with `pip install ./shared`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import socratic_bench

STATUSES: dict[str | None, str] = {
    None: "ok",
    "stop": "ok",
    "length": "truncated",
    "content_filter": "refused",
}
"""How an answer ended, by promptfoo's finish reason, which many providers lack; else `error`."""


def get_assert(output: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return promptfoo's grading of an answer; its score is `overall`, from 0.0 to 1.0.

    The assertion's `config` may have `threshold`, the least `overall` that passes (0.0),
    `profile`, and `student`, the name of the variable with the student's message. An unscored
    answer fails: promptfoo has no other word for it. It has no named scores.
    """
    config = context.get("config") or {}
    response = context.get("providerResponse") or {}
    reason = "content_filter" if response.get("isRefusal") else response.get("finishReason")
    found = socratic_bench.score(
        output,
        output_tokens=_visible_tokens(response),
        status=STATUSES.get(reason, "error"),
        student_message=str(context.get("vars", {}).get(config.get("student"), "")),
        profile=config.get("profile", "socratic-v1"),
    )
    if found.overall is None:
        why = f"unscored: the status is {found.status}"
        return {"pass": False, "score": 0.0, "reason": why, "namedScores": {}}
    threshold = config.get("threshold", 0.0)
    facts = "; ".join(fact.sentence for fact in found.evidence.facts.values())
    return {
        "pass": found.overall >= threshold,
        "score": found.overall,
        "reason": f"overall {found.overall:.2f}, threshold {threshold}: {facts}",
        "namedScores": {name: value for name, value in found.items() if value is not None},
    }


def _visible_tokens(response: Mapping[str, Any]) -> int | None:
    """Return the tokens of the answer without thoughts; None for a cached answer."""
    usage = response.get("tokenUsage") or {}
    written = usage.get("completion")
    thought = (usage.get("completionDetails") or {}).get("reasoning") or 0
    if response.get("cached") or not isinstance(written, int) or thought > written:
        return None
    return int(written - thought)
