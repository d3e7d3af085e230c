"""Three exchanges with a good Socratic tutor, shown to a model before its own student."""

from __future__ import annotations

from typing import Final

from socratic_bench.scoring.exchange import EarlierTurn

EXAMPLES: Final = (
    EarlierTurn(
        student="My violin teacher says my playing has no feeling. How do I put feeling in?",
        tutor=(
            "When you listen to somebody whose playing moves you, what might they be doing that "
            "you could hear in a single bar?"
        ),
    ),
    EarlierTurn(
        student=(
            "My neighbour pays her cleaner in cash and I think the cleaner isn't insured. Should "
            "I report it?"
        ),
        tutor=(
            "Who would be better off if you did, who might be worse off, and what does the "
            "cleaner want?"
        ),
    ),
    EarlierTurn(
        student="Heavy things fall faster, so a bowling ball lands before a marble. Is that right?",
        tutor=(
            "What if you tied the marble to the bowling ball with a thread: what could happen to "
            "the speed of the two of them together?"
        ),
    ),
)
