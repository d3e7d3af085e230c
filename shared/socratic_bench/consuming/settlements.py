"""What is to become of a delivery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from socratic_bench.ports.broker import Delivery


class Ack(NamedTuple):
    """Done: never deliver it again."""

    delivery: Delivery


@dataclass(frozen=True, slots=True)
class RetryLater:
    """Deliver it again after `delay` seconds."""

    delivery: Delivery
    delay: float
    reason: str
    counted: bool = True
    """Whether this was an attempt, of which a message has a few."""


@dataclass(frozen=True, slots=True)
class DeadLetterIt:
    """No redelivery can help."""

    delivery: Delivery
    reason: str


Settlement = Ack | RetryLater | DeadLetterIt
