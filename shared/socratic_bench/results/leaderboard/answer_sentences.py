"""The notes on a model's answers in sentences: what the reader of its figures has to know."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from socratic_bench.domain.aggregates.answers import Answers, Days
from socratic_bench.domain.aggregates.leaderboard import Leaderboard, ModelRow
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.response import Response
from socratic_bench.providers.registry import is_reference
from socratic_bench.results.formats import printable
from socratic_bench.scoring import answer_notes
from socratic_bench.scoring.profile import SAME_RULER

OTHER_TOKENIZER: Final = 1.25
"""How many times the others' median of tokens for a word or mark tells of another tokenizer."""

FEW: Final = 0.05
"""The share of answers below which a note that may be chance is left out."""

_IN_PROCESS: Final = ("local/", "replay/")

_NOT_NAMES: Final = frozenset(
    [
        "chat",
        "instruct",
        "latest",
        "preview",
        "model",
        "mini",
        "small",
        "medium",
        "large",
        "base",
        "it",
        "v1",
        "v2",
        "v3",
        "free",
        "pro",
        "turbo",
        "fast",
        "exp",
        "beta",
        "fp8",
        "awq",
        "gguf",
        "q4",
        "k",
        "m",
        "s",
        "4bit",
        "8bit",
        "hf",
    ]
)
"""Parts of a model's name that many models have."""

_PHRASES: Final[Mapping[str, str]] = {
    answer_notes.REUSED: "asked for by an earlier experiment",
    answer_notes.THOUGHTS: "thoughts were taken out",
    answer_notes.END_TOKENS: "control tokens were cut off",
    answer_notes.STUDENT_TURN: "the answer goes on with words of an invented student",
    answer_notes.CITATIONS: "citation marks were taken out",
    answer_notes.REPEATED_STREAM: "the stream sent its text more than once",
    answer_notes.CONTEXT_CUT: (
        "the provider may have cut the beginning of the conversation off, and needs a larger "
        "context (Ollama: OLLAMA_CONTEXT_LENGTH)"
    ),
    answer_notes.AT_LIMIT: "a finished answer has all tokens that it may, and may be cut off",
    answer_notes.UPPER_COST: "the cost is an upper bound, since `price` has none for a cache",
    answer_notes.SPLIT: "a gateway estimated which tokens are visible",
    answer_notes.MARKS: "marks follow the last question mark, so interrogative is 0",
    answer_notes.MID_SENTENCE: "a finished answer ends in mid-sentence, and may be cut off",
    answer_notes.NOT_ENGLISH: "the language is not English, as the markers are",
    answer_notes.ESTIMATED: (
        "the length is estimated: the provider counted no tokens, or thoughts with them"
    ),
}
"""Each is followed by the models and their answers."""

_BY_CHANCE: Final = frozenset({answer_notes.MID_SENTENCE, answer_notes.NOT_ENGLISH})

TOKENIZER: Final = "note.tokenizer"
REPEATS: Final = "note.repeats"
VERSIONS: Final = "note.versions"

_OF_ROWS: Final[Mapping[str, str]] = {
    TOKENIZER: "tokens for a word are far more than the others' (another tokenizer, or thoughts "
    "in the count): `--length same-ruler` measures all alike",
    REPEATS: "all repeats of a scenario are one answer: a cache, or a fixed seed",
    VERSIONS: "the answers are of several versions, or of one unlike the name",
}


_CLASS: Final = re.compile(
    "mini|nano|micro|tiny|small|medium|large|lite|flash|pro|haiku|sonnet|opus|turbo|plus|max|ultra"
    "|premier|coder"
)
"""Words by which a maker tells models of one family apart."""

_SIZE: Final = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bm]")

LENGTHS: Final = frozenset({"tokenizer", "estimated", "split"})
"""The notes on who counted the tokens of answers."""


class AnswerNote(BaseModel):
    """One thing that the reader of a model's figures has to know about its answers."""

    model_config = ConfigDict(frozen=True)

    name: str
    """The name of the note."""

    count: int
    """The answers that it holds for; scenarios of repeats."""

    of: int
    """The answers that were looked at; scenarios of repeats."""

    told: str
    """The note in words."""

    detail: str = ""
    """The figures in words: `7 of 60`."""


def notes_of(row: ModelRow, board: Leaderboard) -> tuple[AnswerNote, ...]:
    """Return the notes on the answers of a row of the table."""
    others = [
        (each.model, each.answers)
        for each in board.rows
        if each is not row and each.conditions_id == row.conditions_id
    ]
    return notes_beside((row.model, row.answers), others, board.profile)


def notes_beside(
    own: tuple[TutorModel, Answers],
    others: Sequence[tuple[TutorModel, Answers]],
    profile: str,
) -> tuple[AnswerNote, ...]:
    """Return the notes on a model's answers beside those of others, under a profile."""
    model, answers = own
    if is_reference(model):
        return tuple(_notes_of_answers(answers))
    real = [each for other, each in others if not is_reference(other)]
    notes = _notes(model.own_id, answers, real)
    if profile == SAME_RULER:
        notes = (note for note in notes if note.name not in LENGTHS)
    return tuple(notes)


def rulers_differ(notes: Sequence[Sequence[AnswerNote]]) -> bool:
    """Whether the lengths of two models' answers are by different rulers, given their notes."""
    first, second = ({note.name: note.count for note in each} for each in notes)
    return any(first.get(name, 0) != second.get(name, 0) for name in LENGTHS)


def told_of(response: Response) -> list[str]:
    """Return the notes on one answer in words."""
    counts = response.note_counts()
    return [told for name, told in _PHRASES.items() if name in counts]


def sentences(notes: Mapping[str, Sequence[AnswerNote]], most: int) -> list[str]:
    """Return a sentence for each note with the models that it holds for, at most `most` of them."""
    names = [name.removeprefix(answer_notes.PREFIX) for name in (*_OF_ROWS, *_PHRASES)]
    by_name: dict[str, list[str]] = {}
    told: dict[str, str] = {}
    for model, each in notes.items():
        for note in each:
            by_name.setdefault(note.name, []).append(f"{model} ({note.detail})")
            told[note.name] = note.told
    return [
        f"{told[name][0].upper()}{told[name][1:]}: {_first(by_name[name], most)}."
        for name in names
        if name in by_name
    ]


def _notes(model_id: str, answers: Answers, others: Sequence[Answers]) -> Iterator[AnswerNote]:
    n = answers.count
    if (times := _times_the_median(answers, others)) is not None:
        yield _note(TOKENIZER, n, n, f"{times:.2f} x the median")
    if answers.asked_again and 2 * answers.repeated > answers.asked_again:
        yield _note(REPEATS, answers.repeated, answers.asked_again)
    if versions := _other_versions(model_id, answers.versions):
        yield _note(VERSIONS, sum(answers.versions.values()), n, versions)
    yield from _notes_of_answers(answers)


def _notes_of_answers(answers: Answers) -> Iterator[AnswerNote]:
    n = answers.count
    for name in _PHRASES:
        count = answers.notes.get(name, 0)
        if count and (name not in _BY_CHANCE or count >= FEW * n):
            when = f", asked for {days(answers.reused_days)}" if name == answer_notes.REUSED else ""
            yield _note(name, count, n, f"{count} of {n}{when}")


def days(known: Days | None) -> str:
    """Return the first and the last day of answers in words; `earlier` where none is known."""
    if known is None:
        return "earlier"
    first, last = known
    return f"on {first}" if first == last else f"from {first} to {last}"


def _note(name: str, count: int, of: int, detail: str | None = None) -> AnswerNote:
    told = _OF_ROWS.get(name) or _PHRASES[name]
    return AnswerNote(
        name=name.removeprefix(answer_notes.PREFIX),
        count=count,
        of=of,
        told=told,
        detail=detail or f"{count} of {of}",
    )


def _times_the_median(answers: Answers, others: Sequence[Answers]) -> float | None:
    """Return the tokens for a word in terms of the others' median, where that is striking."""
    own = answers.tokens_per_unit
    known = [each.tokens_per_unit for each in others]
    compared = [each for each in known if each is not None]
    if own is None or not compared:
        return None
    times = own / statistics.median(compared)
    return times if times > OTHER_TOKENIZER else None


def _other_versions(model_id: str, versions: Mapping[str, int]) -> str:
    """Return the versions and their answers, where there are several or one unlike the name."""
    if model_id.startswith(_IN_PROCESS) or not versions:
        return ""
    if len(versions) == 1 and is_alike(model_id.partition("/")[2], next(iter(versions))):
        return ""
    return ", ".join(f"{printable(each)} {count}" for each, count in sorted(versions.items()))


def is_alike(name: str, version: str) -> bool:
    """Whether a version may be that of a model's name: nothing that the name says contradicts it.

    The numbers of the name stand in the version, both say the same of the model's class (`mini`,
    `haiku`) and of its size, where both name one, and they share a word besides.
    """
    said, served = _Name.of(name), _Name.of(version)
    if not said.numbers <= served.numbers or said.classes != served.classes:
        return False
    if said.sizes and served.sizes and not said.sizes & served.sizes:
        return False
    plain_name, plain_version = _plain(name), _plain(version)
    if plain_name in plain_version or plain_version in plain_name:
        return True
    return bool((said.words & served.words) - _NOT_NAMES)


class _Name(NamedTuple):
    """The parts of a model's name."""

    words: frozenset[str]
    numbers: frozenset[str]
    """Versions such as `3.5`, without leading zeros; dates too."""

    sizes: frozenset[str]
    """Parameters, such as `70b`."""

    classes: frozenset[str]

    @classmethod
    def of(cls, name: str) -> _Name:
        parts = re.findall(r"[a-z]+|\d[\da-z.]*", name.lower())
        words = frozenset(part for part in parts if part[0].isalpha() and len(part) > 1)
        figures = {part.rstrip(".") for part in parts if part[0].isdigit()}
        sizes = frozenset(part for part in figures if _SIZE.fullmatch(part))
        numbers = (part for figure in figures - sizes for part in figure.split("."))
        return cls(
            words,
            frozenset(number.lstrip("0") or "0" for number in numbers),
            sizes,
            frozenset(filter(_CLASS.fullmatch, words)),
        )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _first(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
