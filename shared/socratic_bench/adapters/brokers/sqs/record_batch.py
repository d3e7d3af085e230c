"""The records of one Lambda event, as deliveries, and its partial batch response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from socratic_bench.adapters.brokers.declarations import attempts_of_copy
from socratic_bench.adapters.brokers.sqs.copies import (
    Copies,
    PutBack,
    Suspects,
    as_new_if_redriven,
    is_suspect,
)
from socratic_bench.adapters.brokers.sqs.sender import Claims
from socratic_bench.adapters.brokers.sqs.server_queue import Incoming, ServerQueue, incoming_of
from socratic_bench.adapters.brokers.sqs.wire import WireState
from socratic_bench.consuming.outcomes import Ack, RetryLater, Settlement
from socratic_bench.errors import BrokerError
from socratic_bench.ports.broker import Delivery

log = structlog.get_logger(__name__)


class RecordBatch:
    """Takes the records of an event as a consumer takes the messages of a poll.

    Lambda deletes the records that the response does not name, and delivers the others again.
    """

    def __init__(
        self,
        queue: ServerQueue,
        copies: Copies,
        claims: Claims,
        receipts: Iterator[int],
        *,
        delivery_limit: int,
    ) -> None:
        self._copies = copies
        self._claims = claims
        self._suspects = Suspects(queue, copies, claims)
        self._receipts = receipts
        self._delivery_limit = delivery_limit
        self._untaken: set[str] = set()
        self._unsettled: dict[int, Incoming] = {}
        self._failed: set[str] = set()

    async def take(self, records: Sequence[Mapping[str, Any]]) -> list[Delivery]:
        """Return the deliveries of the records; a suspect comes as the only one.

        A record that is not due goes back to its queue uncounted, and so do the others of an event
        with a suspect. A record that cannot be read now fails, and all do if this is cancelled.
        """
        incoming = [as_new_if_redriven(incoming_of(record)) for record in records]
        self._untaken = {each.id for each in incoming}
        early = [each for each in incoming if self._copies.seconds_left(each)]
        due = [each for each in incoming if not self._copies.seconds_left(each)]
        with self._failing(early):
            await self._copies.put_back_early(early)
        if any(map(is_suspect, due)):
            due = await self._alone(due)
        deliveries = [delivery for each in due for delivery in await self._deliveries(each)]
        self._untaken.clear()
        return deliveries

    async def settle(self, settlements: Sequence[Settlement]) -> None:
        """Settle deliveries; one that cannot be settled now fails with its record.

        One that is back in its queue is settled after its next delivery.
        """
        for settlement in settlements:
            incoming = self._unsettled.get(settlement.delivery.receipt)
            if incoming is None:
                continue
            with self._failing([incoming]):
                await self._copy(settlement)
            self._unsettled.pop(settlement.delivery.receipt, None)

    async def put_back(self) -> None:
        """Put every unsettled record back into its queue, uncounted; Lambda deletes the originals.

        A record that cannot be put back now fails. Its deliveries are settled no more.
        """
        left = {each.id: each for each in self._unsettled.values()}
        with self._failing(left.values()):
            await self._copies.copy_back(map(PutBack, left.values()))
        self._unsettled.clear()

    def response(self) -> dict[str, list[dict[str, str]]]:
        """Return the partial batch response: every record that is not settled as a whole."""
        failed = self._failed.union(self._untaken, (each.id for each in self._unsettled.values()))
        return {"batchItemFailures": [{"itemIdentifier": each} for each in sorted(failed)]}

    async def _alone(self, due: Sequence[Incoming]) -> list[Incoming]:
        """Return the suspect to handle, after everything else went back, or all that is none."""
        suspects = [each for each in due if is_suspect(each)]
        others = [each for each in due if not is_suspect(each)]
        ready: list[Incoming] = []
        with self._failing(due):
            first, waiting = await self._suspects.sort(suspects)
            if first is None:
                ready = others
            else:
                waiting += (PutBack(each) for each in others)
                ready = [first.incoming]
            await self._copies.put_back(waiting)
        return ready

    async def _deliveries(self, incoming: Incoming) -> list[Delivery]:
        deliveries: list[Delivery] = []
        with self._failing([incoming]):
            deliveries = [
                Delivery(
                    message,
                    incoming.state.attempts + 1,
                    next(self._receipts),
                    is_suspect(incoming),
                )
                for message in await self._claims.messages_of(incoming)
            ]
        self._unsettled.update((delivery.receipt, incoming) for delivery in deliveries)
        return deliveries

    @contextmanager
    def _failing(self, records: Iterable[Incoming]) -> Iterator[None]:
        """Fail these records if the broker cannot do its part."""
        try:
            yield
        except BrokerError as error:
            log.warning("records fail", reason=str(error))
            self._failed.update(each.id for each in records)

    async def _copy(self, settlement: Settlement) -> None:
        """Send what a settlement sends; an Ack sends nothing."""
        delivery = settlement.delivery
        if isinstance(settlement, Ack):
            return
        if isinstance(settlement, RetryLater):
            counted = settlement.counted
            attempts = attempts_of_copy(delivery, self._delivery_limit, counted=counted)
            if attempts is not None:
                state = WireState(attempts=attempts)
                await self._copies.again([delivery.message], state, settlement.delay)
                return
        await self._copies.dead_letter([delivery.message], delivery.attempt, settlement.reason)
