"""The library's entry points: score one response, or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar, overload

from socratic_bench.errors import BrokenProfile
from socratic_bench.scoring.evidence import Evidence
from socratic_bench.scoring.exchange import EarlierTurn, Exchange, Status, effective_status
from socratic_bench.scoring.length import may_count
from socratic_bench.scoring.profile import (
    CANONICAL,
    MOST_COUNT,
    OVERALL,
    CountingProfile,
    Profile,
    combining,
    counting,
    overall,
)
from socratic_bench.scoring.profiles import is_registered, profile_named
from socratic_bench.scoring.visible_text import VisibleText, read

MOST_TOKENS = 10**12
"""The most output tokens of a response; a larger count is a mistake."""


Key = TypeVar("Key")


class Score(Mapping[str, float | None]):
    """The vectors of one response and their overall, each 0.0 to 1.0, unrounded.

    A mapping from vector name (and `overall`) to score; the names are attributes as well:
    `score(text)["verbosity"]` and `score(text).verbosity` are the same figure. Every figure of an
    unscored response is None: unscored is not zero. A vector that does not apply to this response
    is None too, and `overall` is the mean of the others.
    """

    __slots__ = ("_evidence", "_exchange", "_profile", "_values", "overall", "shortened", "status")

    status: Status
    overall: float | None
    shortened: bool
    """Whether something was taken out of the text: thoughts, control tokens, citation marks."""

    def __init__(
        self,
        profile: Profile,
        exchange: Exchange,
        status: Status,
        dimension: str | None,
        *,
        shortened: bool = False,
    ) -> None:
        ruler = getattr(profile, "length", None)
        if ruler is not None:
            exchange = exchange._replace(visible_tokens=ruler(exchange.text))
        self._profile = profile
        self._exchange = exchange
        self._evidence: Evidence | None = None
        self.status = status
        self.shortened = shortened
        self.overall = None
        self._values = _measured(profile, exchange, status)
        if self._values is not None:
            self.overall = _overall(profile, self._values, dimension)

    @property
    def scored(self) -> bool:
        """Whether the response has a score at all."""
        return self.overall is not None

    @property
    def visible_text(self) -> str:
        """The text that was scored: what a student sees. Evidence has its positions."""
        return self._exchange.text

    @property
    def profile(self) -> str:
        """The name of the profile that made this score."""
        return self._profile.name

    @property
    def vectors(self) -> dict[str, float | None] | None:
        """The vectors by name, without `overall`; None if unscored.

        A vector that does not apply is None.
        """
        if self._values is None:
            return None
        return dict(zip(self._profile.vectors, self._values, strict=True))

    @property
    def counts(self) -> dict[str, int]:
        """The profile's counts in this response, by name; empty if unscored or without counts.

        Raises BrokenProfile.
        """
        profile = counting(self._profile)
        if self._values is None or profile is None:
            return {}
        return _counted(profile, self._exchange)

    @property
    def evidence(self) -> Evidence:
        """The evidence for the figures; computed on first use.

        Raises BrokenProfile if the profile makes none, or marks text outside the response.
        """
        if self._evidence is None:
            self._evidence = _explained(self._profile, self._exchange)
        return self._evidence

    def __getstate__(self) -> tuple[Any, ...]:
        # A registered profile is pickled by name: its tables cannot be pickled.
        profile = self._profile.name if is_registered(self._profile) else self._profile
        return profile, self._exchange, self.status, self._values, self.overall, self.shortened

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        profile, self._exchange, self.status, self._values, self.overall, self.shortened = state
        self._profile = profile_named(profile) if isinstance(profile, str) else profile
        self._evidence = None

    def as_dict(self, evidence: Evidence | None = None) -> dict[str, Any]:
        """Return the figures, the status and the evidence (or `evidence`), ready for JSON.

        `visible_text` is there where something was taken out of the text.
        """
        seen = {"visible_text": self.visible_text} if self.shortened else {}
        explained = (evidence or self.evidence).as_dict()
        return {**self, "status": str(self.status), **seen, "evidence": explained}

    def __getitem__(self, name: str) -> float | None:
        if name == OVERALL:
            return self.overall
        try:
            index = self._profile.vectors.index(name)
        except ValueError:
            raise KeyError(name) from None
        return None if self._values is None else self._values[index]

    def __getattr__(self, name: str) -> float | None:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"profile {self.profile} has no vector {name!r}") from None

    def __iter__(self) -> Iterator[str]:
        yield from self._profile.vectors
        yield OVERALL

    def __len__(self) -> int:
        return len(self._profile.vectors) + 1

    def __repr__(self) -> str:
        figures = ", ".join(
            f"{name}={'unscored' if value is None else format(value, '.2f')}"
            for name, value in self.items()
        )
        return f"Score({figures}, status={str(self.status)!r}, profile={self.profile!r})"


def score(
    text: str,
    *,
    output_tokens: float | None = None,
    status: Status | str = Status.OK,
    dimension: str | None = None,
    student_message: str = "",
    earlier_turns: Sequence[EarlierTurn | Mapping[str, Any]] = (),
    grade: float | None = None,
    answer_key: Sequence[str] = (),
    profile: str | Profile = CANONICAL,
    raw: bool = True,
) -> Score:
    """Score a tutor's response.

    `text` is a provider's: thoughts, control tokens and citation marks in it are taken out
    (`visible_text.read`), unless `raw` is False: then it is what a student sees, as stored
    responses have it. `output_tokens` is the provider's count of visible output tokens, without
    reasoning; where it is None, or far too low for the text, or counts thoughts of the text, an
    estimate stands for it: words x 1.3, or by the letters of its script. `status` says how the
    response ended: only `ok` is scored, and `truncated` from 500 tokens on. A blank text is `empty`
    and unscored. `dimension` matters to profiles that weigh vectors by dimension; `student_message`
    and `earlier_turns` (oldest first) matter to profiles that compare the response with them; a
    mapping with the keys `student` and `tutor` is a turn, too (`earlier_turns_of`).
    `grade` is a model's grade of the response from 0.0 to 1.0, for a profile such as
    `socratic-v1-llm`. `answer_key` is the final answer in each form that gives it away, for a
    profile such as `fidelity-1`.

    Raises TypeError if `text` is no string or a turn is none, UnknownProfile for a profile that is
    not installed,
    BrokenPlugin or BrokenProfile for a defective one, and ValueError for an unknown status, a
    number of tokens outside 0 to MOST_TOKENS, or a grade outside 0 to 1.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"score takes the text of a response, a string, not {type(text).__name__}; "
            "score_all takes a list of texts, or a mapping from ids to texts"
        )
    if output_tokens is not None and not 0 <= output_tokens <= MOST_TOKENS:
        raise ValueError(f"output_tokens must be from 0 to {MOST_TOKENS:,}")
    if grade is not None and not 0 <= grade <= 1:
        raise ValueError("grade must be from 0 to 1")
    seen = read(text) if raw else VisibleText(text)
    counts = raw and output_tokens is not None
    if counts and (seen.reasoning or not may_count(output_tokens or 0, seen.text)):
        output_tokens = None
    ended = effective_status(status if type(status) is Status else Status(status), seen.text)
    return Score(
        profile_named(profile) if isinstance(profile, str) else profile,
        Exchange(
            seen.text,
            output_tokens,
            student_message,
            earlier_turns_of(earlier_turns) if earlier_turns else (),
            grade,
            ended,
            tuple(answer_key),
        ),
        ended,
        dimension,
        shortened=seen.text != text,
    )


def earlier_turns_of(turns: object) -> tuple[EarlierTurn, ...]:
    """Return turns, oldest first, of which each is one or a mapping.

    A mapping has `student` and `tutor`, and may have `output_tokens` and `status`. Raises TypeError
    or ValueError, naming the turn.
    """
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        raise TypeError('`earlier_turns` must be a list of {"student": …, "tutor": …}')
    return tuple(
        turn if isinstance(turn, EarlierTurn) else _turn(f"`earlier_turns` {number}", turn)
        for number, turn in enumerate(turns, 1)
    )


def _turn(place: str, turn: object) -> EarlierTurn:
    if not isinstance(turn, Mapping):
        raise TypeError(f'{place} must be {{"student": …, "tutor": …}}, not {turn!r:.50}')
    student, tutor = turn.get("student"), turn.get("tutor")
    if not isinstance(student, str) or not isinstance(tutor, str):
        raise TypeError(f"{place} needs `student` and `tutor`, both strings")
    tokens = turn.get("output_tokens")
    if tokens is not None and (type(tokens) is not int or not 0 <= tokens <= MOST_TOKENS):
        raise ValueError(f"{place}: `output_tokens` must be a whole number, not {tokens!r:.50}")
    status = turn.get("status")
    return EarlierTurn(student, tutor, tokens, None if status is None else Status(status))


@overload
def score_all(
    texts: Mapping[Key, str], *, profile: str | Profile = CANONICAL
) -> dict[Key, Score]: ...


@overload
def score_all(texts: Sequence[str], *, profile: str | Profile = CANONICAL) -> list[Score]: ...


def score_all(
    texts: Mapping[Key, str] | Sequence[str], *, profile: str | Profile = CANONICAL
) -> dict[Key, Score] | list[Score]:
    """Score several responses: a list of texts gives a list, in order; ids and texts a dict.

    Raises TypeError for a single string and for a text that is no string; else as `score` does.
    """
    if isinstance(texts, str):
        raise TypeError("score_all takes a list of texts; score takes a single one")
    if isinstance(texts, Mapping):
        return {key: score(text, profile=profile) for key, text in texts.items()}
    return [score(text, profile=profile) for text in texts]


def _measured(
    profile: Profile, exchange: Exchange, status: Status
) -> tuple[float | None, ...] | None:
    """Return the vectors, or None for an unscored response. Raises BrokenProfile."""
    try:
        if not profile.may_score(status, exchange.visible_tokens):
            return None
        values = profile.measure(exchange)
    except Exception as error:
        raise _broken(profile, f"cannot measure a response: {_said(error)}") from error
    if not isinstance(values, tuple):
        raise _broken(profile, f"measured {type(values).__name__}, not a tuple of vectors")
    if len(values) != len(profile.vectors):
        wrong = f"measured {len(values)} vectors, but names {len(profile.vectors)}"
        raise _broken(profile, wrong)
    for vector, value in zip(profile.vectors, values, strict=True):
        if value is not None and not _is_score(value):
            wrong = f"measured {value!r} for {vector}; a score is from 0 to 1"
            raise _broken(profile, wrong)
    return values


def _overall(
    profile: Profile, values: tuple[float | None, ...], dimension: str | None
) -> float | None:
    """Return the overall of measured vectors. Raises BrokenProfile."""
    combined = combining(profile)
    if combined is None:
        return overall(values, profile.weights.of(dimension, profile.vectors))
    try:
        made = combined.combine(values, dimension)
    except Exception as error:
        raise _broken(profile, f"cannot combine its vectors: {_said(error)}") from error
    if made is not None and not _is_score(made):
        raise _broken(profile, f"combined {made!r} for {OVERALL}; a score is from 0 to 1")
    return made


def _counted(profile: CountingProfile, exchange: Exchange) -> dict[str, int]:
    """Return the counts of a response by name. Raises BrokenProfile."""
    try:
        counts: object = profile.count(exchange)
    except Exception as error:
        raise _broken(profile, f"cannot count in a response: {_said(error)}") from error
    if not isinstance(counts, tuple) or len(counts) != len(profile.counts):
        wrong = f"counted {counts!r}, which is not one number for each of {profile.counts}"
        raise _broken(profile, wrong)
    for name, count in zip(profile.counts, counts, strict=True):
        if not isinstance(count, int) or not 0 <= count <= MOST_COUNT:
            raise _broken(
                profile, f"counted {count!r} for {name}; a count is a whole number from 0"
            )
    return dict(zip(profile.counts, counts, strict=True))


def _is_score(value: object) -> bool:
    return isinstance(value, (float, Real)) and 0.0 <= float(value) <= 1.0


def _explained(profile: Profile, exchange: Exchange) -> Evidence:
    try:
        evidence = profile.evidence(exchange)
    except Exception as error:
        raise _broken(profile, f"cannot explain a score: {_said(error)}") from error
    if not isinstance(evidence, Evidence):
        raise _broken(profile, f"explains a score by {type(evidence).__name__}, not Evidence")
    length = len(exchange.text)
    for span in evidence.spans:
        if not 0 <= span.start <= span.end <= length:
            wrong = f"marks characters {span.start} to {span.end} of a text that has {length}"
            raise _broken(profile, wrong)
    return evidence


def _broken(profile: Profile, problem: str) -> BrokenProfile:
    return BrokenProfile(f"profile {profile.name} {problem}")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
