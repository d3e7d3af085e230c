"""Money in whole nanodollars, so that sums are exact. 1 USD is 1_000_000_000 nanodollars."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NANODOLLARS_PER_DOLLAR = 1_000_000_000
_TOKENS_PER_PRICE = 1_000_000

Dollars = Annotated[Decimal, Field(ge=0, le=1_000_000)]


def nanodollars(dollars: Decimal) -> int:
    """Return an amount in USD as the nearest whole number of nanodollars, halves to even."""
    return int((dollars * NANODOLLARS_PER_DOLLAR).to_integral_value(ROUND_HALF_EVEN))


class Price(BaseModel):
    """The price of a model's tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_per_million: Dollars
    """USD for a million input tokens."""

    output_per_million: Dollars
    """USD for a million output tokens, reasoning included."""

    def cost_nanodollars(self, input_tokens: int, output_tokens: int) -> int:
        """Return the cost of one call, rounded half to even once."""
        dollars = (
            self.input_per_million * input_tokens + self.output_per_million * output_tokens
        ) / _TOKENS_PER_PRICE
        return nanodollars(dollars)
