"""Counting tokens where there is no tokenizer: words x 1.3, as a whole number."""

from __future__ import annotations

from functools import lru_cache

from socratic_bench.ports.models import Question
from socratic_bench.scoring.socratic_v1.vectors import estimated_tokens


def tokens_of(text: str) -> int:
    """The tokens `text` is taken to have."""
    return round(estimated_tokens(text))


def input_tokens_of(question: Question) -> int:
    """The tokens of everything a tutor reads for `question`."""
    count = _kept_tokens_of(question.system_prompt) + _kept_tokens_of(question.student_message)
    for earlier in question.earlier_turns:
        count += tokens_of(earlier.student) + tokens_of(earlier.tutor)
    return count


# System prompts and students' messages come again with every repeat.
_kept_tokens_of = lru_cache(maxsize=512)(tokens_of)
