"""What SQS allows a queue, and what its declaration asks for: a deployment asks for the same."""

from __future__ import annotations

from typing import Final

RETENTION_SECONDS: Final = 14 * 24 * 3600
"""Seconds that SQS keeps a message: the most it can."""

LAST_RESORT_RECEIVES: Final = 50
"""Deliveries after which SQS itself moves a message to the dead letters. Consumers do so long
before, unless none ever gets to look at it: a store may be away for hours."""

MOST_NAME_LENGTH: Final = 80
