"""What one call to a model can take at most, before it is made: its tokens, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, localcontext
from typing import Final

from socratic_bench.domain.money import Price

TOKENS_PER_MESSAGE: Final = 16
"""Tokens at most that a chat template puts around one message."""

TOKENS_PER_CALL: Final = 100
"""Tokens at most that a chat template adds of its own, such as a message with today's date."""

_NANODOLLARS_PER_TOKEN = 1_000
"""What a token costs at a price of 1 USD for a million."""

_ROUNDING_UP = Context(prec=50, rounding=ROUND_CEILING)


def input_tokens_at_most(texts: Sequence[str]) -> int:
    """Input tokens of a call that sends `texts`, one a message, whatever the model's tokenizer is.

    No tokenizer in use makes more tokens of a text than it has bytes in UTF-8.
    """
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return size + TOKENS_PER_MESSAGE * len(texts) + TOKENS_PER_CALL


def tokens_at_most(texts: Sequence[str], max_tokens: int) -> int:
    """Input and output tokens of a call that sends `texts` and asks for `max_tokens` at most."""
    return input_tokens_at_most(texts) + max_tokens


def at_most_nanodollars(price: Price, input_tokens: int, max_tokens: int) -> int:
    """What a call costs that takes no more tokens than these: rounded up, never too little."""
    with localcontext(_ROUNDING_UP):
        input_cost = price.input_per_million * input_tokens
        output_cost = price.output_per_million * max_tokens
        return int(((input_cost + output_cost) * _NANODOLLARS_PER_TOKEN).to_integral_value())


def most_a_call_costs(price: Price | None, texts: Sequence[str], max_tokens: int) -> int:
    """Nanodollars that a call which sends `texts` can cost at most; 0 where no price is known."""
    if price is None:
        return 0
    return at_most_nanodollars(price, input_tokens_at_most(texts), max_tokens)
