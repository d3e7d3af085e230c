"""The recipe of `socratic-v2`: ask, don't tell; and how closely a turn takes up what was said."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from socratic_bench.scoring.evidence import Evidence, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status
from socratic_bench.scoring.profile import OVERALL, VectorDescription, Weights
from socratic_bench.scoring.socratic_v2.evidence import (
    DESCRIPTIONS,
    LEGEND,
    OVERALL_FORMULA,
    evidence_of,
)
from socratic_bench.scoring.socratic_v2.reading import Reading, reading_of
from socratic_bench.scoring.socratic_v2.vectors import (
    counts_of,
    dimensions_of,
    form_of,
    without,
)

ASKING: Final = MappingProxyType({"asking": 0.6})
"""A response without a question loses three of the five vectors of its mean: asking itself, and
open and closing, which need one."""


class SocraticV2:
    """Six vectors of a turn's form, which make `overall`, and seven reading dimensions beside it.

    It measures the form of a turn, not its correctness. Never train against it.
    """

    name = "socratic-v2"
    _counts_own_words = True
    vectors = tuple(description.name for description in DESCRIPTIONS)
    weights = Weights()
    overall_formula = OVERALL_FORMULA
    shares = MappingProxyType({OVERALL: ASKING, "form": ASKING})
    fewest_scenarios = MappingProxyType(dict.fromkeys(("ground", "guide", "notice", "locate"), 15))

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Score finished responses alone: a cut-off one might have asked in its next sentence."""
        return status is Status.OK

    def measure(self, exchange: Exchange) -> tuple[float, ...]:
        reading = self._read(exchange)
        counts = counts_of(reading)
        form = form_of(reading, counts)
        return (*form[:6], *dimensions_of(form.overall, counts))

    def combine(self, values: tuple[float | None, ...], dimension: str | None) -> float | None:
        """Return the overall: the vector `form`, in every dimension."""
        return values[self.vectors.index("form")]

    def guards(self, exchange: Exchange) -> Mapping[str, float]:
        """Return the guards of the form, and the overall without the one for grounding."""
        reading = self._read(exchange)
        form = form_of(reading, counts_of(reading))
        return {
            "inquiry": form.inquiry,
            "restraint": form.restraint,
            "solo": form.solo,
            "grounding": form.grounding,
            "form without grounding": form.overall / form.grounding,
        }

    def overall_without(self, vector: str, values: tuple[float | None, ...]) -> float | None:
        """Return the overall as it would be without one vector, given what `measure` returned."""
        known = [value or 0.0 for value in values]
        return without(vector, known[:6], known[self.vectors.index("form")])

    def evidence(self, exchange: Exchange) -> Evidence:
        return evidence_of(exchange.text, self._read(exchange))

    def describe(self) -> tuple[VectorDescription, ...]:
        return DESCRIPTIONS

    def legend(self) -> tuple[SpanKind, ...]:
        return LEGEND

    def _read(self, exchange: Exchange) -> Reading:
        return reading_of(exchange, counts_own_words=self._counts_own_words)


class SocraticV3(SocraticV2):
    """`socratic-v2` without the tutor's own earlier words: repetition grounds nothing.

    A first turn has the same scores under both.
    """

    name = "socratic-v3"
    _counts_own_words = False
