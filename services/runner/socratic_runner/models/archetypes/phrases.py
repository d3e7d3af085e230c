"""Joins phrases into paragraphs."""

from __future__ import annotations


def phrases(text: str) -> tuple[str, ...]:
    """Return the paragraphs of `text`, each on one line."""
    return tuple(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
