"""Copies of messages that a consumer returns: to the queue, now or later, or to dead letters."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from socratic_bench.adapters.brokers.batches import batches
from socratic_bench.adapters.brokers.sqs.sender import (
    LONGEST_DELAY,
    Claims,
    OutgoingSend,
    Sender,
    SendTarget,
)
from socratic_bench.adapters.brokers.sqs.server_queue import (
    MOST_ENTRIES,
    Incoming,
    ServerQueue,
    handles_of,
)
from socratic_bench.adapters.brokers.sqs.wire import BATCH_BYTES, WireState
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import SUSPECT_AFTER, WorkQueue, alone_for, ended_alone

EARLY_SECONDS: Final = 0.5
"""A message that comes so much before it is due counts as due."""


_SEARCHED_SECONDS: Final = 30.0
_SEARCH_SECONDS: Final = 1


class PutBack(NamedTuple):
    """A message that goes back to its queue as it is, uncounted."""

    incoming: Incoming
    delay: float = 0.0
    postponed: int = 0
    """How often in a row it came to consumers that had the share of its group in hand."""


class Copies:
    """Sends copies to one queue and to its dead letters."""

    def __init__(
        self,
        sender: Sender,
        work: WorkQueue,
        queue: ServerQueue,
        dead: ServerQueue,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` tells the time in Unix seconds."""
        self._sender = sender
        self._work = work
        self._queue = queue
        self._target = SendTarget(queue.url, separate_groups=work.separate_groups)
        self._dead = SendTarget(dead.url)
        self._now = now

    async def again(
        self, messages: Sequence[Message], state: WireState, delay: float = 0.0
    ) -> None:
        """Deliver messages of one group again, after `delay` seconds or up to one more."""
        if delay > 0:
            state = replace(state, due=round(self._now() + delay, 3))
        await self._sender.send(
            [
                OutgoingSend(self._target, await self._sender.encoded(batch, state), _whole(delay))
                for batch in batches(messages, self._work.batch, most_bytes=BATCH_BYTES)
            ]
        )

    async def put_back(self, some: Iterable[PutBack]) -> None:
        """Send copies of messages that no handler began, and delete these; none is counted."""
        some = list(some)
        if some:
            await self.copy_back(some)
            await self._queue.delete(handles_of(each.incoming for each in some))

    async def copy_back(self, some: Iterable[PutBack]) -> None:
        """Send copies of messages as they are, uncounted; the caller has these deleted."""
        await self._sender.send(
            [
                OutgoingSend(
                    self._target,
                    each.incoming.encoded.with_state(
                        replace(
                            each.incoming.state,
                            redeliveries=each.incoming.redeliveries,
                            postponed=each.postponed,
                        )
                    ),
                    _whole(each.delay),
                )
                for each in some
            ]
        )

    async def put_back_early(self, early: Iterable[Incoming]) -> None:
        """Delay messages further that came before they are due."""
        await self.put_back([PutBack(each, self.seconds_left(each)) for each in early])

    def seconds_left(self, incoming: Incoming) -> float:
        """Seconds until a delayed message is due; 0 if it is due, or will be in a moment."""
        left = incoming.state.due - self._now()
        return left if left > EARLY_SECONDS else 0.0

    async def delete_group(self, group: str) -> None:
        """Pass over the visible messages of the queue once; delete those of the group.

        SQS cannot search a queue: the others go back as copies, uncounted. Delayed messages and
        those in other hands stay.
        """
        left = await self._queue.depth()
        while left > 0:
            some = await self._queue.receive(
                MOST_ENTRIES, invisible=_SEARCHED_SECONDS, wait=_SEARCH_SECONDS
            )
            if not some:
                return
            left -= len(some)
            others = [each for each in some if each.encoded.group != group]
            doomed = [each for each in some if each.encoded.group == group]
            await asyncio.gather(
                self._queue.delete(handles_of(doomed)),
                self.put_back([PutBack(each, postponed=each.state.postponed) for each in others]),
            )

    async def split(self, incoming: Incoming, messages: Iterable[Message]) -> None:
        """Replace a batch that came back too often by its messages, each of them a suspect."""
        state = WireState(attempts=incoming.state.attempts, redeliveries=SUSPECT_AFTER)
        await self._sender.send(
            [
                OutgoingSend(self._target, await self._sender.encoded([message], state))
                for message in messages
            ]
        )
        await self._queue.delete([incoming.handle])

    async def letters_back(self, letters: Iterable[Incoming]) -> None:
        """Send copies of dead letters to the dead letters, as they are."""
        await self._sender.send([OutgoingSend(self._dead, each.encoded) for each in letters])

    async def dead_letter(self, messages: Iterable[Message], attempts: int, reason: str) -> None:
        """Send each message to the dead letters."""
        state = WireState(attempts=attempts, reason=reason)
        await self._sender.send(
            [
                OutgoingSend(self._dead, await self._sender.encoded([message], state))
                for message in messages
            ]
        )


def _whole(delay: float) -> int:
    return min(LONGEST_DELAY, math.ceil(max(0.0, delay)))


UNREADABLE_SECONDS: Final = 30.0
"""Seconds until a suspect is tried again whose content S3 does not give."""


def as_new_if_redriven(incoming: Incoming) -> Incoming:
    """Return a dead letter that AWS, not `redrive`, moved back to its queue as a new message."""
    if incoming.state.reason is None:
        return incoming
    state = replace(incoming.state, attempts=0, redeliveries=0, reason=None)
    return incoming._replace(state=state)


def is_suspect(incoming: Incoming) -> bool:
    """Tell whether a message came back unsettled so often that it has to be handled alone."""
    return incoming.redeliveries >= SUSPECT_AFTER


def alone_seconds(suspect: Incoming) -> float:
    """Return the seconds that a suspect is alone in its consumer's hand."""
    return alone_for(suspect.redeliveries - SUSPECT_AFTER)


class Suspect(NamedTuple):
    """A message to be handed out alone, with its content."""

    incoming: Incoming
    messages: list[Message]


class Suspects:
    """Takes suspects of one queue apart, dead-letters them, or has one of them handed out."""

    def __init__(self, queue: ServerQueue, copies: Copies, claims: Claims) -> None:
        self._queue = queue
        self._copies = copies
        self._claims = claims

    async def sort(self, suspects: Iterable[Incoming]) -> tuple[Suspect | None, list[PutBack]]:
        """Return the one to hand out, if any, and those that have to wait for their turn.

        A batch becomes its messages, each of them a suspect. What ended its consumers alone, as
        often as it may, becomes a dead letter.
        """
        first: Suspect | None = None
        waiting: list[PutBack] = []
        for each in suspects:
            try:
                messages = await self._claims.messages_of(each)
            except BrokerUnavailable:
                waiting.append(PutBack(each, UNREADABLE_SECONDS))
                continue
            deaths = each.redeliveries - SUSPECT_AFTER
            if len(messages) > 1:
                await self._copies.split(each, messages)
            elif deaths >= SUSPECT_AFTER:
                attempt = each.state.attempts + 1
                await self._copies.dead_letter(messages, attempt, ended_alone(deaths))
                await self._queue.delete([each.handle])
            elif first is None:
                first = Suspect(each, messages)
            else:
                waiting.append(PutBack(each))
        return first, waiting
