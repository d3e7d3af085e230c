"""Money in whole nanodollars (1 USD is 1_000_000_000), and upper bounds of a call."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

NANODOLLARS_PER_DOLLAR = 1_000_000_000
_TOKENS_PER_PRICE = 1_000_000

Dollars = Annotated[Decimal, Field(ge=0, le=1_000_000)]


def nanodollars(dollars: Decimal) -> int:
    """Return an amount in USD as the nearest whole number of nanodollars, halves to even."""
    return int((dollars * NANODOLLARS_PER_DOLLAR).to_integral_value(ROUND_HALF_EVEN))


_WRITE_FACTOR: Final = 2
"""Anthropic charges this many times its input price for what stays in a cache for an hour; other
providers and times cost less."""

_IfKnown = Field(exclude_if=lambda price: price is None)
"""Left out of JSON without a price, as in plans of earlier versions."""


class Price(BaseModel):
    """The price of a model's tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_per_million: Dollars
    """USD for a million input tokens."""

    output_per_million: Dollars
    """USD for a million output tokens, reasoning included."""

    cached_input_per_million: Annotated[Dollars | None, _IfKnown] = None
    """USD for a million input tokens that a cache gave; None: unknown."""

    cache_write_per_million: Annotated[Dollars | None, _IfKnown] = None
    """USD for a million input tokens that the provider put into a cache; None: unknown."""

    @property
    def dearest_input_per_million(self) -> Decimal:
        """USD for a million input tokens, at most."""
        prices = (
            self.input_per_million,
            self.cached_input_per_million,
            self.cache_write_per_million,
        )
        return max(price for price in prices if price is not None)

    @property
    def halved(self) -> Price:
        """The price in a provider's batch."""
        prices = self.model_dump(exclude_none=True)
        return Price(**{name: each / 2 for name, each in prices.items()})

    def cost_nanodollars(
        self, input_tokens: int, output_tokens: int, cached: int = 0, cache_written: int = 0
    ) -> int:
        """Return the cost of one call, rounded half to even once.

        Of the input tokens, `cached` came from a cache and `cache_written` went into one. Without
        their own prices the result is an upper bound.
        """
        usual = self.input_per_million
        read, write = self.cached_input_per_million, self.cache_write_per_million
        dollars = (
            usual * (input_tokens - cached - cache_written)
            + (usual if read is None else read) * cached
            + (usual * _WRITE_FACTOR if write is None else write) * cache_written
            + self.output_per_million * output_tokens
        ) / _TOKENS_PER_PRICE
        return nanodollars(dollars)


TOKENS_PER_MESSAGE: Final = 16
"""The most tokens that a chat template puts around one message."""

TOKENS_PER_CALL: Final = 100
"""The most tokens that a chat template adds to a call, such as a message with today's date."""

_NANODOLLARS_PER_TOKEN = 1_000
"""The cost of a token at a price of 1 USD for a million."""

_ROUNDING_UP = Context(prec=50, rounding=ROUND_CEILING)


def input_tokens_at_most(texts: Sequence[str]) -> int:
    """Return the most input tokens that a call with these messages takes under any tokenizer.

    No tokenizer in use makes more tokens of a text than the text has bytes in UTF-8.
    """
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return size + TOKENS_PER_MESSAGE * len(texts) + TOKENS_PER_CALL


def tokens_at_most(texts: Sequence[str], max_tokens: int) -> int:
    """Return the most tokens, input and output, of a call with these messages and `max_tokens`."""
    return input_tokens_at_most(texts) + max_tokens


def at_most_nanodollars(price: Price, input_tokens: int, max_tokens: int) -> int:
    """Return the most nanodollars that a call of at most these tokens costs, rounded up."""
    with localcontext(_ROUNDING_UP):
        input_cost = price.dearest_input_per_million * input_tokens
        output_cost = price.output_per_million * max_tokens
        return int(((input_cost + output_cost) * _NANODOLLARS_PER_TOKEN).to_integral_value())


def most_a_call_costs(price: Price | None, texts: Sequence[str], max_tokens: int) -> int:
    """Return the most nanodollars that a call with these messages costs; 0 for an unknown price."""
    if price is None:
        return 0
    return at_most_nanodollars(price, input_tokens_at_most(texts), max_tokens)
