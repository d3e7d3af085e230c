"""The length of a text in tokens, where no provider counted them, or one ruler for all is wanted.

Tokenizers differ: one text has 40 % more tokens by one maker's count than by another's. A word,
the ending of a contraction, a group of up to three digits, a blank before a digit, or a mark is one
token of o200k_base in English, within 3 % in the median of 15,865 public answers. Scripts without
that rule are counted by their letters.
"""

from __future__ import annotations

import re
from typing import Final

TOKENS_PER_WORD: Final = 1.3
"""The tokens that stand for one word where a provider gives no count."""

_MOST_CHARACTERS: Final = 20
_MOST_WORDS: Final = 4
"""Beyond the characters and the words of a token in any language."""

_CONTRACTED: Final = re.compile(r"'(?:s|t|re|ve|ll|d|m)\b")
_BEYOND: Final = re.compile(r"[^\x00-\x7f]")

_HAN: Final = (
    r"\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
_KANA: Final = r"\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"

_SCRIPTS: Final = (
    (re.compile(rf"[{_HAN}]"), 0.8),
    (re.compile(rf"[{_KANA}]"), 0.86),
    (re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]"), 0.78),
    (re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"), 0.45),
    (re.compile(r"[\u0590-\u05ff\ufb1d-\ufb4f]"), 0.48),
    (re.compile(r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff]"), 0.4),
    (re.compile(r"[\u0900-\u0dff]"), 0.4),
    (re.compile(r"[\u0370-\u03ff\u1f00-\u1fff\u0530-\u058f\u10a0-\u10ff]"), 0.4),
    (re.compile(r"[\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff]"), 0.32),
)
"""Letters of a script, and the tokens of o200k_base for one: Chinese, Japanese, Korean, Thai and
its neighbours, Hebrew, Arabic, the scripts of India, Greek, Armenian and Georgian, Cyrillic."""

_BEYOND_SHARE: Final = 0.03
"""More bytes than characters: of more, the letters of a text are looked at."""

_LATIN_WORD: Final = re.compile(r"[^\W\d_]+")
_BEYOND_ASCII: Final = re.compile(r"[^\W\d_\x00-\x7f]")
_LONG_WORDS: Final = 5.5
"""Letters of a mean word, above which words x 1.3 is far too low: Finnish, Polish, Hungarian."""

_FEWEST_WORDS: Final = 8
"""Words below which nothing is told of a text's language."""

_ACCENTED: Final = 0.02
"""The share of letters beyond ASCII from which a text in Latin letters is not taken for English."""

_TOKENS_PER_LETTER: Final = 0.32
"""Tokens of o200k_base for a letter of a language with long words (Finnish 0.36, German 0.27)."""


def words_and_marks(text: str) -> float:
    r"""Return the length of `text` by the ruler that is the same for all models, in tokens.

    In English: the matches of `'(s|t|re|ve|ll|d|m)\b|[^\W\d_]+|\d{1,3}| (?=\d)|[^\w\s]|_`,
    counted without a search for each, which would take longer than a score.
    """
    if text.isascii():
        return _units(text)
    if not _is_mostly_ascii(text):
        tokens, rest = _by_letters(text)
    elif all(_kind(each) == "." for each in set(_BEYOND.findall(text))):
        return _units(text.encode("ascii", "replace").decode("ascii"))
    else:
        tokens, rest = 0.0, text
    return tokens + _units(_BEYOND.sub(_kind_of, rest))


def _units(text: str) -> int:
    kinds = text.encode("ascii").translate(_KINDS)
    units = _beginnings(kinds.translate(_ONLY_LETTERS)) + kinds.count(b".")
    if b"0" in kinds:
        numbers = kinds.translate(_ONLY_DIGITS).split()
        units += sum((len(number) + 2) // 3 for number in numbers) + kinds.count(b" 0")
    if "'" in text:
        # The mark and the letters after it are one.
        units -= sum(1 for _ in _CONTRACTED.finditer(text))
    return units


def may_count(tokens: float, text: str) -> bool:
    """Whether a provider's count can be that of a text: no tokenizer makes one token of five words.

    Gateways send 0 for a cached answer, and the count of its last piece for a stream.
    """
    return tokens * _MOST_CHARACTERS >= len(text) or tokens * _MOST_WORDS >= words_in(text)


def words_in(text: str) -> int:
    """Return `len(text.split())`, for ASCII in half the time."""
    if text.isascii():
        return _beginnings(text.encode("ascii").translate(_BLANK_OR_NOT))
    return len(text.split())


def _beginnings(letters: bytes) -> int:
    """Return the number of groups of `a` between blanks."""
    return letters.count(b" a") + letters.startswith(b"a")


def _kind_of(match: re.Match[str]) -> str:
    return _kind(match[0])


def _kind(character: str) -> str:
    if character.isdecimal():
        return "0"
    if character.isspace():
        return " " if character == " " else "\n"
    return "a" if character.isalnum() else "."


_KINDS: Final = bytes(ord(_kind(chr(code))) if code < 128 else ord(".") for code in range(256))
"""A letter, a digit, a blank, other white space or a mark for each byte of ASCII."""

_ONLY_LETTERS: Final = bytes(code if code == ord("a") else ord(" ") for code in range(256))
_ONLY_DIGITS: Final = bytes(code if code == ord("0") else ord(" ") for code in range(256))
_BLANK_OR_NOT: Final = bytes(ord(" " if chr(code).isspace() else "a") for code in range(256))


def estimated_tokens(text: str) -> float:
    """Return the estimated tokens of `text`: `words x 1.3`, or by the letters of its script."""
    if text.isascii() or _is_mostly_ascii(text):
        return words_in(text) * TOKENS_PER_WORD
    tokens, rest = _by_letters(text)
    return tokens + (_long_words(rest) or len(rest.split()) * TOKENS_PER_WORD)


def _is_mostly_ascii(text: str) -> bool:
    """Whether a text has no more beyond ASCII than marks, and a word here and there."""
    return len(text.encode(errors="replace")) < (1 + _BEYOND_SHARE) * len(text)


def _by_letters(text: str) -> tuple[float, str]:
    """Return the tokens of the letters of other scripts, and the text without them."""
    tokens = 0.0
    for letters, each in _SCRIPTS:
        rest, count = letters.subn(" ", text)
        if count:
            tokens, text = tokens + count * each, rest
    return tokens, text


def _long_words(text: str) -> float:
    """Return the tokens of a text in a language with long words and accents; 0.0 for another."""
    accented = len(_BEYOND_ASCII.findall(text))
    if not accented:
        return 0.0
    words = _LATIN_WORD.findall(text)
    letters = sum(map(len, words))
    if len(words) < _FEWEST_WORDS or letters < _LONG_WORDS * len(words):
        return 0.0
    if accented < _ACCENTED * letters:
        return 0.0
    return letters * _TOKENS_PER_LETTER
