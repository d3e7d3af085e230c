"""The settlements of a delivery: ack, retry, dead letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from socratic_bench.ports.broker import Delivery


class Ack(NamedTuple):
    """The delivery is done; the broker forgets it."""

    delivery: Delivery


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Deliver it again after `delay` seconds."""

    delivery: Delivery
    delay: float
    reason: str
    counted: bool = True
    """Whether this counts as one of the message's attempts."""


@dataclass(frozen=True, slots=True)
class DeadLetterIt:
    """The delivery becomes a dead letter: a redelivery cannot help."""

    delivery: Delivery
    reason: str


Settlement = Ack | RetryLater | DeadLetterIt
