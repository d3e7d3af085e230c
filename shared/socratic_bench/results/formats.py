"""Formats of scores, shares, intervals, money and times. Unknown is never zero."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor, log10
from typing import Final

MISSING: Final = "\u2013"
"""The mark of an unknown figure."""


def figure(value: object) -> str:
    """Format a score to hundredths; a dash for anything but a number."""
    return f"{value:.2f}" if isinstance(value, int | float) else MISSING


def signed(value: float | None) -> str:
    """Format a difference to hundredths with its sign; a dash for an unknown one."""
    if value is None:
        return MISSING
    text = f"{value:+.2f}".replace("-", "\u2212")
    return "0.00" if text.endswith("0.00") else text


def share(value: float | None) -> str:
    """Format a share as a whole percentage; 0 % is exactly none and 100 % exactly all."""
    if value is None:
        return MISSING
    whole = round(100 * value)
    return f"{whole if value in {0, 1} else min(max(whole, 1), 99)} %"


def interval(bounds: tuple[float, float] | None) -> str:
    """Format an interval to hundredths; a dash without one."""
    return MISSING if bounds is None else f"{bounds[0]:.2f} to {bounds[1]:.2f}"


def signed_interval(bounds: tuple[float, float] | None) -> str:
    """Format the interval of a difference, with signs; a dash without one."""
    return MISSING if bounds is None else f"{signed(bounds[0])} to {signed(bounds[1])}"


def room(bounds: tuple[float, float]) -> str:
    """Format how far a difference may be from 0 either way, given its interval."""
    return figure(max(map(abs, bounds)))


def dollars(amount: float, *, at_least: bool = False) -> str:
    """Format an amount in USD as `$1,234.57`; below 1 USD with four digits or more after the point.

    It has at least two significant digits: `$0.00` is exactly zero.
    """
    if amount == 0 or amount >= 1:
        text = f"${amount:,.2f}"
    else:
        text = f"${amount:.{max(4, 1 - floor(log10(amount)))}f}"
    return f"≥ {text}" if at_least else text


def cost(total_usd: float | None, known: float | None) -> str:
    """Format the cost of responses whose `known` share has a cost; a dash for an unknown cost."""
    if total_usd is None:
        return MISSING
    return dollars(total_usd, at_least=is_partial(known))


def is_partial(known: float | None) -> bool:
    """Whether the cost of some responses is unknown."""
    return known is not None and known < 1


def moment(time: datetime | None) -> str:
    """Format a time to the minute, in UTC; a dash without one."""
    return MISSING if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def p_value(value: float) -> str:
    """Format a p value with its letter."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def printable(text: str) -> str:
    """Replace what does not print, such as line ends and marks that reverse a text's direction."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)
