"""Scores the body of a request in pieces, so that no request blocks another.

A body of 2 MB takes seconds to score, and its answer has ten times its size. So requests take
turns, a piece each, and a piece is sent before the next one is scored. Small bodies are scored
on the event loop, large ones in a thread: they delay a small one only until Python switches
threads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json, to_json
from starlette.exceptions import HTTPException

from socratic_api.http.problems import RETRY_SECONDS, Problem
from socratic_api.score_shapes import ConvertedAnswer, ScoreBatch, ScoreRequest
from socratic_bench.errors import BrokenPlugin, BrokenProfile, InvalidInput, UnknownProfile
from socratic_bench.invalid_values import mistakes_in, quoted, shown
from socratic_bench.scoring.evidence import Evidence, Span
from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.legacy import is_legacy, legacy_scores
from socratic_bench.scoring.score import Score, score

SMALL_BODY: Final = 16 * 1024
"""The most bytes of a small body: scoring it takes less time than a thread would."""

LARGE_AT_ONCE: Final = 8
"""The most large bodies held at once, from their first byte to the last byte of their answer."""

MOST_WAITING: Final = 64
"""The most requests that wait for their turn, small and large ones each; others are refused."""

LONGEST_WAIT: Final = 30.0
"""Seconds that a large body may wait for others."""

PIECE: Final = 16 * 1024
"""Characters scored at a time, one item at least."""

KEYS_NAMED: Final = 8
"""The most keys of a wrong body that its error names."""

SPANS_SHOWN: Final = 1000
"""The most listed spans of one kind; all of them count."""

Result = TypeVar("Result")
Item = ScoreRequest | ConvertedAnswer | InvalidInput
"""The text to score, the scores of an old record, or the reason why nothing can be scored."""


@dataclass(slots=True)
class ScoringTurns:
    """Gives each request its turn."""

    _small: asyncio.Lock = field(default_factory=asyncio.Lock)
    _large: asyncio.Lock = field(default_factory=asyncio.Lock)
    _room: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, LARGE_AT_ONCE))
    _small_waiting: int = 0
    _large_waiting: int = 0
    _thread: ThreadPoolExecutor = field(
        # One thread: sixteen answers at once took 836 MB.
        default_factory=partial(ThreadPoolExecutor, 1, thread_name_prefix="scoring")
    )

    async def small(self, work: Callable[[], Result]) -> Result:
        """Do work of milliseconds in turn. Raises HTTPException 503 if too many requests wait."""
        if self._small_waiting >= MOST_WAITING:
            raise _busy()
        self._small_waiting += 1
        try:
            async with self._small:
                await asyncio.sleep(0)  # one per round of the event loop
                return work()
        finally:
            self._small_waiting -= 1

    async def large(self, work: Callable[[], Result]) -> Result:
        """Do longer work in the thread."""
        async with self._large:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def make_room(self) -> None:
        """Wait until a large body may be held. Raises HTTPException 503 if too many wait."""
        if self._large_waiting >= MOST_WAITING:
            raise _busy()
        self._large_waiting += 1
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                await self._room.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._large_waiting -= 1

    def leave_room(self) -> None:
        """Note the end of a large body."""
        self._room.release()

    def close(self) -> None:
        """End the thread after its present work."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def items_in(body: bytes) -> Item | list[Item]:
    """Return the item in a body, or those of a batch. Raises InvalidInput for neither."""
    try:
        data = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"body: not JSON: {error}") from None
    if isinstance(data, dict) and _is_old(data):
        return _item(data, "")
    if not isinstance(data, dict) or not data.keys() & {"text", "items"}:
        expected = '{"text": "…"} or {"items": […]}'
        raise InvalidInput(f"body: must be {expected}, not {_outline(data)}")
    if "items" not in data:
        return _item(data, "")
    try:
        batch = ScoreBatch.model_validate(data)
    except ValidationError as error:
        raise InvalidInput(mistakes_in(error, ScoreBatch, shows_values=True)) from None
    return [_item(each, f"items.{at}") for at, each in enumerate(batch.items)]


def _outline(data: JsonValue) -> str:
    """Return what a body is instead of a request, without its values."""
    if not isinstance(data, dict):
        return shown(data)
    keys = [quoted(key) for key in islice(data, KEYS_NAMED)]
    more = ", …" if len(data) > KEYS_NAMED else ""
    return f"an object with {', '.join(keys)}{more}" if keys else "an empty object"


def one_answer(item: Item) -> bytes:
    """Return the answer to a request for one score. Raises InvalidInput."""
    if isinstance(item, InvalidInput):
        raise item
    if isinstance(item, ConvertedAnswer):
        return to_json(item)
    return to_json(_scored(item, ""))


def batch_answer(items: Sequence[Item]) -> bytes:
    """Return the answer to a request for many scores."""
    return b'{"scores":[%b]}' % _answers(items, 0)


async def batch_answer_in_pieces(
    turns: ScoringTurns, items: Sequence[Item]
) -> AsyncIterator[bytes]:
    """Yield the same in pieces, each made when it is needed."""
    yield b'{"scores":['
    first = 0
    while first < len(items):
        after = _end_of_piece(items, first)
        piece = await turns.large(partial(_answers, items[first:after], first))
        yield b",%b" % piece if first else piece
        first = after
    yield b"]}"


def _end_of_piece(items: Sequence[Item], first: int) -> int:
    characters = 0
    for at in range(first, len(items)):
        item = items[at]
        characters += _size(item) if isinstance(item, ScoreRequest) else 100
        if characters >= PIECE:
            return at + 1
    return len(items)


def _size(item: ScoreRequest) -> int:
    """Return the characters that a profile may read to score this item."""
    earlier = sum(len(turn.student) + len(turn.tutor) for turn in item.earlier_turns)
    return len(item.text) + len(item.student_message) + earlier


def _answers(items: Sequence[Item], first: int) -> bytes:
    """Yield the answers to these items with commas between; the first is the batch's `first`."""
    return b",".join(to_json(_score_or_problem(each, at)) for at, each in enumerate(items, first))


def _is_old(data: dict[str, Any]) -> bool:
    return not data.keys() & {"text", "items"} and is_legacy(data)


def _converted(data: dict[str, Any], place: str) -> Item:
    try:
        return ConvertedAnswer(scores=legacy_scores(data))
    except ValueError as error:
        return InvalidInput(f"{place}.{error}" if place else str(error))


def _item(data: object, place: str) -> Item:
    try:
        if isinstance(data, dict) and _is_old(data):
            return _converted(data, place)
        return ScoreRequest.model_validate(data)
    except ValidationError as error:
        return InvalidInput(mistakes_in(error, ScoreRequest, within=place, shows_values=True))


def _score_or_problem(item: Item, at: int) -> dict[str, Any]:
    try:
        if isinstance(item, InvalidInput):
            raise item
        if isinstance(item, ConvertedAnswer):
            return item.model_dump()
        return _scored(item, f"items.{at}")
    except InvalidInput as error:
        problem = Problem.of(422, str(error))
        return {"error": problem.model_dump()}


def _scored(asked: ScoreRequest, place: str) -> dict[str, Any]:
    try:
        return shown_score(
            score(
                asked.text,
                output_tokens=asked.output_tokens,
                status=asked.status,
                dimension=asked.dimension,
                student_message=asked.student_message,
                earlier_turns=[
                    EarlierTurn(turn.student, turn.tutor, turn.output_tokens, turn.status)
                    for turn in asked.earlier_turns
                ],
                profile=asked.profile,
            )
        )
    except (UnknownProfile, BrokenPlugin, BrokenProfile) as error:
        raise InvalidInput(f"{place}.profile: {error}" if place else f"profile: {error}") from None


def shown_score(scored: Score) -> dict[str, Any]:
    """Return a score as the API shows it: vectors, `overall`, status and evidence."""
    return scored.as_dict(_shortened(scored.evidence))


def _shortened(evidence: Evidence) -> Evidence:
    """Return the evidence with at most SPANS_SHOWN spans of a kind, and a note about more."""
    if len(evidence.spans) <= SPANS_SHOWN:
        return evidence
    seen: Counter[str] = Counter()
    kept: list[Span] = []
    for span in evidence.spans:
        seen[span.kind] += 1
        if seen[span.kind] <= SPANS_SHOWN:
            kept.append(span)
    more = tuple(
        f"the first {SPANS_SHOWN:,} of {count:,} {kind} spans are listed"
        for kind, count in seen.items()
        if count > SPANS_SHOWN
    )
    return replace(evidence, spans=tuple(kept), notes=(*evidence.notes, *more))


def _busy() -> HTTPException:
    detail = "too many texts wait to be scored; try again soon"
    return HTTPException(503, detail, {"Retry-After": RETRY_SECONDS, "Connection": "close"})
