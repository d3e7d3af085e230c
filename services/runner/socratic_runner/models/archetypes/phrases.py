"""Writing phrases in a row: paragraphs of one text, apart by an empty line."""

from __future__ import annotations


def phrases(text: str) -> tuple[str, ...]:
    """The paragraphs of `text`, each on one line."""
    return tuple(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
