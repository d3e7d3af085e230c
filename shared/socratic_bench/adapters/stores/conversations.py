"""The earlier turns of a response: its row leaves them to their own rows.

A row that leaves them out names them by a digest, where its record would have a list. A reader
composes them from the earlier rows of the run and compares the digest. An older version, which
knows no digests, refuses such a row; it would otherwise score the response without them.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic_core import from_json

from socratic_bench.domain.response import Response
from socratic_bench.ports.stores.responses import TurnKey
from socratic_bench.scoring.exchange import EarlierTurn

MOST_KNOWN: Final = 10_000
"""The most digests that a store remembers; rows of other conversations keep their earlier turns."""

FIELD: Final = "earlier_turns"


class KnownConversations:
    """Digests of the rows of conversations, from the first turn up to each known one."""

    def __init__(self, beneath: KnownConversations | None = None) -> None:
        """Also know the digests of `beneath`, which learns this one's by `add_beneath` alone."""
        self._beneath = beneath
        self._digests: OrderedDict[TurnKey, str] = OrderedDict()
        self._proposed: dict[TurnKey, str] = {}

    def digest_before(self, response: Response) -> str | None:
        """Return the digest of the earlier turns; None unless a known row has each."""
        if len(response.earlier_turns) != response.turn - 1:
            return None
        if response.last_turn and not response.earlier_turns:
            return None
        content = _Content(response.earlier_turns)
        before = content.digest
        if response.earlier_turns and before != self.known(_before(response)):
            return None
        if not response.last_turn:
            content.add(response.as_earlier_turn)
            self._proposed[turn_of(response)] = content.digest
        return before if response.earlier_turns else None

    def note(self, turn: TurnKey) -> None:
        """Remember that a response has a row as `digest_before` was given it."""
        if digest := self._proposed.pop(turn, None):
            self._digests[turn] = digest

    def add(self, digests: Mapping[TurnKey, str]) -> None:
        """Remember digests of rows, and forget the oldest ones."""
        self._digests |= digests
        while len(self._digests) > MOST_KNOWN:
            self._digests.popitem(last=False)

    def add_beneath(self) -> None:
        """Have the object beneath remember this one's digests, once their rows are committed."""
        if self._beneath is not None:
            self._beneath.add(self._digests)

    def known(self, turn: TurnKey) -> str | None:
        """Return the digest of the rows of a run up to this turn, or None."""
        known = self._digests.get(turn)
        return self._beneath.known(turn) if known is None and self._beneath else known


class ResponseReader:
    """Reads rows of responses; those of one run come in the order of their turns."""

    def __init__(self) -> None:
        self.digests: dict[TurnKey, str] = {}
        """The digest of the rows of a run up to each turn that was read, the first one included."""

        self._run_id: str | None = None
        self._content = _Content()

    def read(self, row: Any) -> Response:
        """The response in (run_id, turn, record). Raises ValueError without its earlier turns."""
        run_id, turn, record = row
        if turn == 1:
            self._run_id, self._content = run_id, _Content()
            response = Response.model_validate_json(record)
        else:
            response = self._later_turn(run_id, turn, record)
        if self._run_id == run_id and len(self._content.turns) == turn - 1:
            self._content.add(response.as_earlier_turn)
            if not response.last_turn:
                self.digests[TurnKey(run_id, turn)] = self._content.digest
        return response

    def _later_turn(self, run_id: str, turn: int, record: str) -> Response:
        fields = from_json(record)
        digest = fields.get(FIELD)
        turns = self._content.turns if self._run_id == run_id else []
        if _are_told(turns, digest):
            fields[FIELD] = tuple(turns)
        elif isinstance(digest, str):
            if len(turns) < turn - 1:
                raise ValueError(f"the row of its earlier turn {len(turns) + 1} cannot be read")
            if self._content.digest != digest:
                raise ValueError("the rows of its earlier turns are not those that came before it")
            fields[FIELD] = tuple(turns)
        return Response.model_validate(fields)


def _are_told(turns: Sequence[EarlierTurn], listed: object) -> bool:
    """Whether a record lists these turns, in an earlier version without their statuses."""
    return isinstance(listed, list) and [(turn.student, turn.tutor) for turn in turns] == [
        (turn.get("student"), turn.get("tutor")) for turn in listed if isinstance(turn, dict)
    ]


class _Content:
    """Turns one after the other, and the digest of them all."""

    def __init__(self, turns: Iterable[EarlierTurn] = ()) -> None:
        self.turns: list[EarlierTurn] = []
        self._digest = hashlib.blake2b(digest_size=16)
        for turn in turns:
            self.add(turn)

    @property
    def digest(self) -> str:
        """The same in every version: no library decides about the bytes that it is of."""
        return self._digest.hexdigest()

    def add(self, turn: EarlierTurn) -> None:
        self.turns.append(turn)
        for part in (turn.student, turn.tutor, str(turn.visible_tokens), str(turn.status)):
            content = part.encode()
            self._digest.update(b"%d:" % len(content))
            self._digest.update(content)


def record_without_earlier_turns(response: Response, digest: str) -> str:
    """The record of a response that leaves its earlier turns to their own rows."""
    rest = response.__pydantic_serializer__.to_json(response, exclude={FIELD}).decode()
    return f'{rest[:-1]},"{FIELD}":"{digest}"}}'


def turn_of(response: Response) -> TurnKey:
    return TurnKey(response.run.run_id, response.turn)


def _before(response: Response) -> TurnKey:
    return TurnKey(response.run.run_id, response.turn - 1)
