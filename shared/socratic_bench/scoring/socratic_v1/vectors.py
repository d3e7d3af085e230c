"""The three vectors of `socratic-v1`, as pure functions. Scores run from 0.0 to 1.0, unrounded."""

from __future__ import annotations

VERBOSITY_LIMIT = 500
"""The output tokens at which verbosity reaches 0.0."""

EXPLORATORY_MARKERS = ("consider", "might", "depends", "perhaps", "what if", "could")
DIRECTIVE_MARKERS = ("should", "must", "the answer is", "always", "never")


def verbosity(tokens: float) -> float:
    """Return `1 - min(tokens / 500, 1)`: 0.0 for 500 visible output tokens or more."""
    return 1.0 - min(tokens, VERBOSITY_LIMIT) / VERBOSITY_LIMIT


def exploratory(exploratory_count: int, directive_count: int) -> float:
    """Return `((e - d) / (e + d) + 1) / 2`, the balance of markers; 0.5 without a marker."""
    marked = exploratory_count + directive_count
    if marked == 0:
        return 0.5
    return ((exploratory_count - directive_count) / marked + 1.0) / 2.0


def interrogative(text: str) -> float:
    """Return 1.0 if the stripped text ends with a question mark, else 0.0."""
    return 1.0 if text.rstrip().endswith("?") else 0.0
