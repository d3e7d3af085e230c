"""Scoring one response: the library's front door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socratic_bench.scoring.evidence import Evidence
from socratic_bench.scoring.exchange import EarlierTurn, Exchange
from socratic_bench.scoring.profile import OVERALL, Profile, overall
from socratic_bench.scoring.profiles import CANONICAL, PROFILES, profile_named
from socratic_bench.scoring.statuses import Status, effective_status

MOST_TOKENS = 10**12
"""More output tokens than any response has; beyond, a count is a mistake."""


class Score(Mapping[str, float | None]):
    """The vectors of one response and their overall, each 0.0 to 1.0, unrounded.

    A mapping from vector name (and `overall`) to score; the names are attributes as well:
    `score(text)["verbosity"]` and `score(text).verbosity` are the same figure. Every figure of an
    unscored response is None: unscored is not zero.
    """

    __slots__ = ("_evidence", "_exchange", "_profile", "_values", "overall", "status")

    status: Status
    overall: float | None

    def __init__(
        self, profile: Profile, exchange: Exchange, status: Status, dimension: str | None
    ) -> None:
        self._profile = profile
        self._exchange = exchange
        self._evidence: Evidence | None = None
        self.status = status
        self._values: tuple[float, ...] | None = None
        self.overall = None
        if profile.may_score(status, exchange.visible_tokens):
            self._values = profile.measure(exchange)
            self.overall = overall(self._values, profile.weights.of(dimension, profile.vectors))

    @property
    def scored(self) -> bool:
        """Whether the response has a score at all."""
        return self._values is not None

    @property
    def profile(self) -> str:
        """The name of the profile that made this score."""
        return self._profile.name

    @property
    def vectors(self) -> dict[str, float] | None:
        """The vectors by name, without `overall`; None if unscored."""
        if self._values is None:
            return None
        return dict(zip(self._profile.vectors, self._values, strict=True))

    @property
    def evidence(self) -> Evidence:
        """Why the figures are what they are; computed when first asked for."""
        if self._evidence is None:
            self._evidence = self._profile.evidence(self._exchange)
        return self._evidence

    def __getstate__(self) -> tuple[Any, ...]:
        # A registered profile goes by its name: its tables cannot be pickled.
        registered = PROFILES.get(self._profile.name) is self._profile
        profile = self._profile.name if registered else self._profile
        return profile, self._exchange, self.status, self._values, self.overall

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        profile, self._exchange, self.status, self._values, self.overall = state
        self._profile = profile_named(profile) if isinstance(profile, str) else profile
        self._evidence = None

    def as_dict(self) -> dict[str, Any]:
        """The figures, the status and the evidence, ready for JSON."""
        return {**self, "status": str(self.status), "evidence": self.evidence.as_dict()}

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
    earlier_turns: Sequence[EarlierTurn] = (),
    profile: str | Profile = CANONICAL,
) -> Score:
    """Score a tutor's response.

    `output_tokens` is the provider's count of visible output tokens, without reasoning; where it is
    None, words x 1.3 stand for it. `status` says how the response ended: only `ok` is scored, and
    `truncated` from 500 tokens on. A text without anything but white space is `empty`, and
    unscored. `dimension` matters where the profile weighs vectors by dimension.

    Raises UnknownProfile for a profile nobody registered, ValueError for an unknown status or a
    number of tokens outside 0 to MOST_TOKENS.
    """
    if output_tokens is not None and not 0 <= output_tokens <= MOST_TOKENS:
        raise ValueError(f"output_tokens must be from 0 to {MOST_TOKENS:,}")
    return Score(
        profile_named(profile) if isinstance(profile, str) else profile,
        Exchange(text, output_tokens, student_message, tuple(earlier_turns)),
        effective_status(status if type(status) is Status else Status(status), text),
        dimension,
    )
