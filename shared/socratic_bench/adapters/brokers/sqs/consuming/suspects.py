"""Messages that came back unsettled too often: which one is to be handed out alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from socratic_bench.adapters.brokers.sqs.connecting.server_queue import ServerQueue
from socratic_bench.adapters.brokers.sqs.publishing.claims import Claims
from socratic_bench.adapters.brokers.sqs.publishing.copies import Copies, PutBack
from socratic_bench.adapters.brokers.sqs.record import Incoming
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.events.message import Message
from socratic_bench.ports.broker import SUSPECT_AFTER, alone_for, ended_alone

UNREADABLE_SECONDS: Final = 30.0
"""Seconds until a suspect is tried again whose content S3 does not give."""


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
