"""One turn as an archetype sees it: the conversation, its tokens, draws that vary the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import TypeVar

from socratic_bench.ports.models import Question
from socratic_bench.scoring.length import estimated_tokens


def phrases(text: str) -> tuple[str, ...]:
    """Return the paragraphs of `text`, each on one line."""
    return tuple(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


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


T = TypeVar("T")

_CLAUSE_ENDS = re.compile(r"[.!?:;,)]+(?=\s|$)|[(\n]|\s[–—-]\s")
_LEADING = re.compile(r"^(?:and|because|but|honestly|so)\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_PLAIN = re.compile(r"[\w '’/,%$€£-]+")
_LONGEST_WORD = 25
_UNFINISHED = {"a", "and", "because", "but", "from", "my", "of", "or", "that", "the", "to", "with"}
_FIRST_WORDS_OF_QUESTIONS = """
    about are can correct do does find how if is just please tell what when where who why
"""
_WORDS_THAT_SAY_LITTLE = """
    about again already also anyone anything because been before being bottom can't could couldn't
    didn't does doesn't don't else ever every everyone everything find first from gave getting going
    have haven't having here honestly into it's just keep know like main many more most much need
    never nothing number other others over please question really right said same says send she's
    should since some something still tell than that that's their them then there there's they're
    thing things this those three today tomorrow tonight very want wants we've were what what's when
    which while with without won't work works would write yet your
"""
_ASKING = frozenset(_FIRST_WORDS_OF_QUESTIONS.split())
_SAYS_LITTLE = frozenset(_WORDS_THAT_SAY_LITTLE.split())


class Draw:
    """Deterministic choices that look random: the key decides them on every machine."""

    def __init__(self, *key: object) -> None:
        text = "\x1f".join(str(part) for part in key)
        self._rest = int.from_bytes(blake2b(text.encode(), digest_size=32).digest(), "big")

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to `bound` - 1."""
        self._rest, number = divmod(self._rest, bound)
        return number

    def one(self, options: Sequence[T]) -> T:
        """Draw one of `options`."""
        return options[self.below(len(options))]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        """Draw `count` different `options`, in their own order."""
        left = list(range(len(options)))
        taken = [left.pop(self.below(len(left))) for _ in range(count)]
        return [options[index] for index in sorted(taken)]

    def once_in(self, often: int) -> bool:
        """Draw True once in `often` times."""
        return self.below(often) == 0


@dataclass(frozen=True)
class Moment:
    """One turn as an archetype sees it."""

    archetype: str
    scenario_id: str
    dimension: str
    student_message: str
    turn: int
    variant: int
    """Sets repeats of a turn apart."""

    draw: Draw = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        draw = Draw(self.archetype, self.scenario_id, self.turn, self.variant)
        object.__setattr__(self, "draw", draw)

    @cached_property
    def quote(self) -> str:
        """A clause of the student's message, to be put between quotation marks."""
        message = self.student_message
        clauses = [_LEADING.sub("", " ".join(part.split())) for part in _CLAUSE_ENDS.split(message)]
        fitting = [clause for clause in clauses if _can_be_quoted(clause)]
        if fitting:
            return self.draw.one(fitting)
        words = message.split()
        return " ".join(words[:8]) + (" …" if len(words) > 8 else "")

    @cached_property
    def key_word(self) -> str:
        """A long word of the student's message: long words carry the topic more often."""
        words = {word for word in _WORD.findall(self.student_message) if _carries_a_topic(word)}
        longest = sorted(words, key=lambda word: (-len(word), word))[:4]
        return self.draw.one(longest) if longest else self.quote

    def fill(self, template: str) -> str:
        """Put the student's words into `template` at {quote} and {word}.

        The student's text is inserted, never parsed: its braces stay braces.
        """
        for name in ("quote", "word"):
            if f"{{{name}}}" in template:
                own = self.quote if name == "quote" else self.key_word
                before, _, after = template.partition(f"{{{name}}}")
                return f"{before}{own}{after}"
        return template


def _can_be_quoted(clause: str) -> bool:
    """Return whether a clause is short, whole, and plain prose."""
    words = clause.split()
    return (
        3 <= len(words) <= 13
        and words[0].lower() not in _ASKING
        and words[-1].lower() not in _UNFINISHED
        and _PLAIN.fullmatch(clause) is not None
        and max(map(len, words)) <= _LONGEST_WORD
    )


def _carries_a_topic(word: str) -> bool:
    return 3 < len(word) <= _LONGEST_WORD and word.lower() not in _SAYS_LITTLE
