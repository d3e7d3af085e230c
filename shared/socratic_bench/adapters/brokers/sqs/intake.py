"""Polls a queue for one consumer, and decides what becomes of each message that comes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final

import structlog

from socratic_bench.adapters.brokers.receiving import consumer_broke
from socratic_bench.adapters.brokers.sqs.copies import (
    Copies,
    PutBack,
    Suspects,
    alone_seconds,
    as_new_if_redriven,
    is_suspect,
)
from socratic_bench.adapters.brokers.sqs.sender import Claims
from socratic_bench.adapters.brokers.sqs.server_queue import (
    MOST_ENTRIES,
    Incoming,
    ServerQueue,
    handles_of,
)
from socratic_bench.adapters.brokers.sqs.wire import WireState
from socratic_bench.adapters.brokers.unacked import UnackedMessages
from socratic_bench.concurrency.deadlines import cancelled, wait_at_most
from socratic_bench.errors import BrokerClosed, BrokerError, BrokerUnavailable
from socratic_bench.ports.broker import WorkQueue

log = structlog.get_logger(__name__)

Poll = asyncio.Task[list[Incoming]]


class OrphanedPolls:
    """Awaits polls that nobody waits for any more, and puts back what they bring.

    To cut a poll's connection may lose what SQS hands out at that moment, until it is visible
    again. What an orphaned poll brings, no handler began: it goes back uncounted.
    """

    def __init__(self) -> None:
        self._waiting: set[asyncio.Task[None]] = set()

    def adopt(self, poll: Poll, copies: Copies) -> None:
        """Take over a poll."""
        task = asyncio.create_task(_put_back(poll, copies), name="orphaned poll")
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def ended(self) -> None:
        """Wait until all have put back what they brought."""
        if self._waiting:
            await asyncio.wait(set(self._waiting))

    async def close(self) -> None:
        """Cut the polls that are still waiting."""
        for task in list(self._waiting):
            await cancelled(task)


async def _put_back(poll: Poll, copies: Copies) -> None:
    try:
        brought = await poll
        await copies.put_back([PutBack(each) for each in brought])
    except BrokerError as error:
        log.debug("a poll was lost", reason=str(error))


LONGEST_POSTPONEMENT: Final = 30.0
"""Seconds that a message is put back at most while its group's share is in hand."""

LONGEST_REST: Final = 4.0
"""Seconds that a consumer lets others have what it put back again; it polls on beside longer
postponements."""

_REST_MORE: Final = 0.5
"""Seconds that a rest lasts longer than the postponement, so that others come first."""

GIVE_BACK_SECONDS: Final = 5.0
"""Seconds that a stopping consumer has to put back what it never handed out."""

_TRY_AGAIN_SECONDS: Final = 1.0


class PollIntake:
    """Fills a consumer's unacked messages while there is room, until it drains."""

    def __init__(
        self,
        work: WorkQueue,
        queue: ServerQueue,
        copies: Copies,
        claims: Claims,
        unacked: UnackedMessages[Incoming],
        orphans: OrphanedPolls,
        *,
        prefetch: int,
        prefetch_per_group: int | None,
        invisible: float,
        poll_seconds: int,
        on_broken: Callable[[BrokerError], None],
    ) -> None:
        """`on_broken` hears of the error that ends the intake for good, if any."""
        self._work = work
        self._queue = queue
        self._copies = copies
        self._claims = claims
        self._unacked = unacked
        self._orphans = orphans
        self._suspects = Suspects(queue, copies, claims)
        self._prefetch = prefetch
        self._per_group = prefetch_per_group if work.separate_groups else None
        self._invisible = invisible
        self._poll_seconds = poll_seconds
        self._on_broken = on_broken
        self.trouble: str | None = None
        """Why the last poll failed; None if it did not."""
        self._messages_each = 1
        """How many messages the last one of SQS held."""
        self._postpones = False
        """Whether the last poll brought messages of groups whose share is in hand."""
        self._rest = 0.0
        """Seconds until the next poll, unless there is more room before."""
        self._draining = False
        self._changed = asyncio.Event()
        self._running = asyncio.create_task(self._run(), name=f"consumer of {queue.name}")

    def look_again(self) -> None:
        """Note that there may be room, or a suspect in hand."""
        self._changed.set()

    def drain(self) -> None:
        """Stop polling, and put back what was not handed out."""
        self._draining = True
        self._changed.set()

    async def end(self) -> None:
        """Stop; what was handed out becomes visible to others at once."""
        self.drain()
        try:
            await asyncio.wait([self._running], timeout=GIVE_BACK_SECONDS)
        finally:
            await cancelled(self._running)
            in_hand = [batch.incoming for batch in self._unacked.batches]
            self._unacked.lose_all()
        await self._show(in_hand)

    async def _show(self, in_hand: Sequence[Incoming]) -> None:
        try:
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                await self._queue.show_in(0, handles_of(in_hand))
        except (BrokerError, TimeoutError) as error:
            log.debug("not shown at once", queue=self._queue.name, reason=str(error))

    async def _run(self) -> None:
        try:
            while not self._draining:
                try:
                    await self._take()
                except BrokerClosed:
                    return
                except BrokerError as error:
                    self._report(str(error))
                    await wait_at_most(_TRY_AGAIN_SECONDS, self._changed)
            await self._put_all_back()
        except BrokerError as error:
            log.debug("not put back", queue=self._queue.name, reason=str(error))
        except Exception as error:
            # Without this, callers that wait for messages would wait for ever.
            log.exception("consumer broke", queue=self._queue.name)
            self._on_broken(consumer_broke(self._work.name, error))

    async def _take(self) -> None:
        """Poll once if there is room, else wait until there may be."""
        self._changed.clear()
        self._unacked.clear(asyncio.get_running_loop().time())
        rest, self._rest = self._rest, 0.0
        if rest:
            await wait_at_most(rest, self._changed)
            return
        wanted = self._room()
        if wanted == 0:
            await wait_at_most(self._pause(), self._changed)
            return
        await self._queue.check_rights()
        poll = asyncio.create_task(
            self._queue.receive(wanted, invisible=self._invisible, wait=self._poll_seconds),
            name=f"poll of {self._queue.name}",
        )
        brought = await self._end_of(poll)
        if brought is not None:
            self.trouble = None
            await self._arrive(brought)

    async def _end_of(self, poll: Poll) -> list[Incoming] | None:
        """Await a poll; None if the consumer drains before, and leaves the poll to the broker."""
        try:
            while not poll.done() and not self._draining:
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait([poll, changed], return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self._changed.clear()
        except asyncio.CancelledError:
            self._orphans.adopt(poll, self._copies)
            raise
        if poll.done():
            return poll.result()
        self._orphans.adopt(poll, self._copies)
        return None

    def _room(self) -> int:
        """How many messages of SQS to ask for."""
        free = self._prefetch - self._unacked.held
        if free <= 0 or not self._unacked.admits_others:
            return 0
        if self._postpones:
            # Most of a poll goes back, and a poll of ten costs the same as a poll of one.
            return MOST_ENTRIES
        return min(MOST_ENTRIES, max(1, free // self._messages_each))

    def _pause(self) -> float | None:
        """Seconds until the suspect in hand had its time alone; None without one."""
        until = self._unacked.seclusion.until
        return None if until == inf else max(0.0, until - asyncio.get_running_loop().time())

    async def _arrive(self, brought: Sequence[Incoming]) -> None:
        brought = [as_new_if_redriven(each) for each in brought]
        early = [each for each in brought if self._copies.seconds_left(each)]
        due = [each for each in brought if not self._copies.seconds_left(each)]
        suspects = [each for each in due if is_suspect(each)]
        elsewhere = [
            postponed
            for each in due
            if not is_suspect(each) and (postponed := await self._accept(each)) is not None
        ]
        self._postpones = bool(elsewhere)
        self._rest = _rest_after(brought, elsewhere)
        await self._copies.put_back_early(early)
        await self._copies.put_back(elsewhere)
        if suspects:
            await self._take_suspects(suspects)

    async def _accept(self, incoming: Incoming) -> PutBack | None:
        """Take a message, or return how to put it back.

        That is if its group's share is in hand, or if S3 does not give its content now.
        """
        group, postponed = incoming.encoded.group, incoming.state.postponed
        if self._unacked.held >= self._prefetch:
            return PutBack(incoming, postponed=postponed)
        later = PutBack(
            incoming, min(LONGEST_POSTPONEMENT, 2.0 ** min(postponed, 10)), postponed + 1
        )
        if self._per_group is not None and self._unacked.held_of(group) > self._per_group:
            return later
        try:
            messages = await self._claims.messages_of(incoming)
        except BrokerUnavailable as error:
            self._report(str(error))
            return later
        self._messages_each = max(1, len(messages))
        now = asyncio.get_running_loop().time()
        self._unacked.arrive(incoming, messages, incoming.state.attempts + 1, now)
        return None

    async def _take_suspects(self, suspects: Sequence[Incoming]) -> None:
        """Keep the first one that is to be handed out; everything else goes back before.

        Whatever else this consumer held would count as redelivered if the suspect ended it.
        """
        first, waiting = await self._suspects.sort(suspects)
        await self._copies.put_back(waiting)
        if first is None:
            return
        kept, messages = first
        await self._put_all_back()
        self._unacked.suspect(
            kept,
            messages,
            kept.state.attempts + 1,
            asyncio.get_running_loop().time(),
            alone_seconds(kept),
        )

    async def _put_all_back(self) -> None:
        """Put back what waits here, as copies: SQS would count another delivery.

        If a copy cannot be sent, SQS delivers the whole message again: what is in hand of it too.
        """
        taken_back = deque(self._unacked.take_back())
        done: list[Incoming] = []
        try:
            while taken_back:
                batch, parts = taken_back[0]
                await self._copies.again(
                    [part.delivery.message for part in parts], _as_it_was(batch.incoming)
                )
                taken_back.popleft()
                if self._unacked.gave_back(batch, parts):
                    done.append(batch.incoming)
        except BrokerError:
            for batch, _ in taken_back:
                self._unacked.lose(batch)
            raise
        await self._queue.delete(handles_of(done))

    def _report(self, reason: str) -> None:
        if self.trouble is None:
            log.warning("cannot consume", queue=self._queue.name, reason=reason)
        self.trouble = reason


def _as_it_was(incoming: Incoming) -> WireState:
    """Return the state of a message for a copy that counts neither an attempt nor a delivery."""
    return WireState(
        attempts=incoming.state.attempts,
        redeliveries=incoming.redeliveries,
        postponed=incoming.state.postponed,
    )


def _rest_after(brought: Sequence[Incoming], elsewhere: Sequence[PutBack]) -> float:
    """Return the seconds to rest after a poll of a few messages that all went back once more.

    A server that serves the same consumer first would let the others starve.
    """
    again = [each.delay for each in elsewhere if each.postponed > 1]
    if not again or len(again) < len(brought) or len(brought) == MOST_ENTRIES:
        return 0.0
    return min(again) + _REST_MORE if min(again) <= LONGEST_REST else 0.0
