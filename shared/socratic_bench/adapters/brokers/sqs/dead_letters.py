"""The dead letters of a queue: list, redrive, purge."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import structlog

from socratic_bench.adapters.brokers.sqs.copies import Copies
from socratic_bench.adapters.brokers.sqs.sender import Claims
from socratic_bench.adapters.brokers.sqs.server_queue import (
    MOST_ENTRIES,
    Incoming,
    ServerQueue,
    handles_of,
)
from socratic_bench.adapters.brokers.sqs.wire import WireState
from socratic_bench.errors import BrokerError
from socratic_bench.ports.broker import DeadLetter

log = structlog.get_logger(__name__)

LOOKED_AT_SECONDS: Final = 30.0
"""Seconds after which letters are visible again whose reader died."""

_WAIT_SECONDS: Final = 1
"""Seconds that a poll looks for letters that SQS counted: a long poll asks all of its servers."""


class SqsDeadLetters:
    """The dead letters of one queue. Every method raises BrokerUnavailable and BrokerClosed."""

    def __init__(self, dead: ServerQueue, copies: Copies, claims: Claims, label: str) -> None:
        """`label` is the queue's name without the namespace."""
        self._dead = dead
        self._copies = copies
        self._claims = claims
        self._label = label

    async def depth(self) -> int:
        """Count the messages of SQS that hold the letters."""
        return await self._dead.depth()

    async def oldest(self, limit: int) -> list[DeadLetter]:
        """Return the letters that were sent first; looks at all of them, for SQS has no order."""
        seen: list[Incoming] = []
        try:
            async for some in self._received():
                seen += some
        finally:
            seen.sort(key=lambda each: each.sent)
            await self._put_back(seen)
        letters: list[DeadLetter] = []
        for incoming in seen:
            if len(letters) >= limit:
                break
            letters += await self._letters(incoming)
        return letters[:limit]

    async def _put_back(self, seen: Sequence[Incoming]) -> None:
        """Leave letters as they were. By a redrive policy of theirs each look would be counted."""
        try:
            if seen and await self._dead.attributes("RedrivePolicy"):
                await self._copies.letters_back(seen)
                await self._dead.delete(handles_of(seen))
                return
        except BrokerError as error:
            log.warning("letters not copied", queue=self._dead.name, reason=str(error))
        await self._dead.show_in(0, handles_of(seen))

    async def redrive(self, limit: int | None) -> int:
        """Send letters as new messages, at most as many as the queue holds now."""
        count = 0
        async for some in self._received(limit):
            for position, incoming in enumerate(some):
                if limit is not None and count >= limit:
                    await self._dead.show_in(0, handles_of(some[position:]))
                    return count
                letters = await self._letters(incoming)
                wanted = letters if limit is None else letters[: limit - count]
                await self._copies.again([letter.message for letter in wanted], WireState())
                for letter in letters[len(wanted) :]:  # the rest of a batch
                    await self._copies.dead_letter([letter.message], letter.attempts, letter.reason)
                await self._dead.delete([incoming.handle])
                count += len(wanted)
        return count

    async def purge(self) -> int:
        """Delete the letters that are there now; returns how many messages of SQS held them.

        SQS' own purge takes a minute, and takes what arrives in it.
        """
        count = 0
        async for some in self._received():
            await self._dead.delete(handles_of(some))
            count += len(some)
        return count

    async def _received(self, limit: int | None = None) -> AsyncIterator[list[Incoming]]:
        """Receive each letter that the queue holds now once."""
        await self._dead.check_rights()
        left = await self._dead.depth()
        if limit is not None:
            left = min(left, limit)
        while left > 0:
            some = await self._dead.receive(
                min(left, MOST_ENTRIES), invisible=LOOKED_AT_SECONDS, wait=_WAIT_SECONDS
            )
            if not some:
                return
            yield some
            left -= len(some)

    async def _letters(self, incoming: Incoming) -> Sequence[DeadLetter]:
        state = incoming.state
        reason = state.reason or (
            "SQS moved it here: it was delivered too often, and no consumer settled it"
        )
        return [
            DeadLetter(message, self._label, reason, max(1, state.attempts))
            for message in await self._claims.messages_of(incoming)
        ]
