"""Token estimates without a tokenizer: words x 1.3, as a whole number."""

from __future__ import annotations

from functools import lru_cache

from socratic_bench.ports.models import Question
from socratic_bench.scoring.length import estimated_tokens


def tokens_of(text: str) -> int:
    """Estimate the tokens of `text`."""
    return round(estimated_tokens(text))


def input_tokens_of(question: Question) -> int:
    """Estimate the tokens that a tutor reads for `question`."""
    count = _kept_tokens_of(question.system_prompt) + _kept_tokens_of(question.student_message)
    for earlier in question.earlier_turns:
        count += tokens_of(earlier.student) + tokens_of(earlier.tutor)
    return count


# Every repeat has the same system prompt and the same student messages.
_kept_tokens_of = lru_cache(maxsize=512)(tokens_of)
