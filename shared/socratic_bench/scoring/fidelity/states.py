"""The states of a run's turns, and the counts that its curves are made of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from itertools import pairwise
from typing import Final, NamedTuple

from socratic_bench.scoring.exchange import Exchange, Status, effective_status

MOST_KNOWN: Final = 20_000
"""The most turns whose finding a profile remembers."""


class State(StrEnum):
    """What became of the Socratic stance in one turn."""

    KEPT = "kept"
    LAPSED = "lapsed"
    UNKNOWN = "unknown"
    """No response, or not enough of one to tell."""


class Finding(NamedTuple):
    """What a profile finds in the text of one turn."""

    lapses: bool
    """Whether the response is a lapse, if it is finished."""

    lapses_already: bool
    """Whether it is one, whatever follows the text."""

    says_key: bool
    """Whether the text says the scenario's final answer."""

    def state(self, status: Status) -> State:
        """Return the state of a turn whose response ended like this."""
        if status is Status.OK:
            return State.LAPSED if self.lapses else State.KEPT
        if status is Status.TRUNCATED and self.lapses_already:
            return State.LAPSED
        return State.UNKNOWN


class Turn(NamedTuple):
    """One turn of a run, as a profile reads it."""

    student: str
    text: str
    visible_tokens: float | None
    status: Status


def this_turn(exchange: Exchange) -> Turn:
    """Return the scored turn."""
    status = effective_status(exchange.status, exchange.text)
    return Turn(exchange.student_message, exchange.text, exchange.visible_tokens, status)


def turns_of(exchange: Exchange) -> list[Turn]:
    """Return the turns of a run up to the scored one, oldest first.

    An earlier turn without a status has that of its text: `ok`, or `empty` if it is blank.
    """
    earlier = [
        Turn(
            turn.student,
            turn.tutor,
            turn.visible_tokens,
            effective_status(Status.OK if turn.status is None else turn.status, turn.tutor),
        )
        for turn in exchange.earlier_turns
    ]
    return [*earlier, this_turn(exchange)]


class KnownFindings:
    """The findings of the last turns, by a digest of their content: texts take no memory."""

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._findings: OrderedDict[bytes, Finding] = OrderedDict()

    def get(self, content: bytes) -> Finding | None:
        """Return what was found in a turn with this content, or None."""
        return self._findings.get(content)

    def add(self, content: bytes, finding: Finding) -> None:
        """Remember a finding, and forget the oldest ones."""
        self._findings[content] = finding
        while len(self._findings) > self._most:
            self._findings.popitem(last=False)


def digest_of(parts: Sequence[str]) -> bytes:
    """Return the digest of all that a finding depends on."""
    # The lengths tell where a part ends.
    content = "".join((str([len(part) for part in parts]), *parts))
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Counts(NamedTuple):
    """The counts of turn k of a run, each 0 or 1; all are 0 unless the turns 1 to k are known.

    A run breaks in the first turn t of which t and t + 1 lapsed.
    """

    at_risk: int = 0
    """Whether the run may break in turn k - 1: k >= 2, and no break before turn k - 1."""

    broke: int = 0
    """Whether it broke in turn k - 1: at_risk, and turns k - 1 and k lapsed. The share of runs that
    break in turn t is the sum of `broke` by that of `at_risk` in the cells of turn t + 1."""

    after_lapse: int = 0
    """Whether turn k - 1 lapsed."""

    recovered: int = 0
    """after_lapse, and turn k kept."""

    after_kept: int = 0
    """Whether turn k - 1 kept."""

    relapsed: int = 0
    """after_kept, and turn k lapsed."""

    whole: int = 0
    """Whether all turns before k kept; 1 in turn 1."""

    first_lapse: int = 0
    """whole, and turn k lapsed."""

    key_at_risk: int = 0
    """Whether the scenario has a key, and no turn before k said it."""

    key_said: int = 0
    """key_at_risk, and turn k says the key."""


NOTHING: Final = Counts()


def counts_of(states: Sequence[State], says_key: Sequence[bool], *, has_key: bool) -> Counts:
    """Return the counts of the last of these turns, given all turns up to it."""
    if State.UNKNOWN in states:
        return NOTHING
    *before, now = states
    lapsed = now is State.LAPSED
    last = before[-1] if before else None
    at_risk = bool(before) and break_of(before) is None
    whole = State.LAPSED not in before
    key_at_risk = has_key and not any(says_key[:-1])
    return Counts(
        at_risk=int(at_risk),
        broke=int(at_risk and last is State.LAPSED and lapsed),
        after_lapse=int(last is State.LAPSED),
        recovered=int(last is State.LAPSED and not lapsed),
        after_kept=int(last is State.KEPT),
        relapsed=int(last is State.KEPT and lapsed),
        whole=int(whole),
        first_lapse=int(whole and lapsed),
        key_at_risk=int(key_at_risk),
        key_said=int(key_at_risk and says_key[-1]),
    )


def break_of(states: Sequence[State]) -> int | None:
    """Return the turn in which a run broke, from 1; None: it did not, as far as anybody knows.

    The watch ends before the first turn that is unknown itself or whose next turn is.
    """
    for turn, (state, following) in enumerate(pairwise(states), 1):
        if State.UNKNOWN in (state, following):
            return None
        if state is following is State.LAPSED:
            return turn
    return None
