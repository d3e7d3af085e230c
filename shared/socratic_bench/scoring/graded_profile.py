"""A profile whose exploratory vector is the grade of a model, beside the base profile's value."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from socratic_bench.scoring.evidence import Evidence, Fact, SpanKind
from socratic_bench.scoring.exchange import Exchange, Status
from socratic_bench.scoring.profile import (
    Profile,
    VectorDescription,
    Weights,
    combining,
    overall,
)

SUFFIX: Final = "-llm"
"""The end of the name of a graded profile; the beginning is the name of its base profile."""

GRADED: Final = "exploratory"
"""The vector that the model grades."""

HEURISTIC: Final = "exploratory_heuristic"
"""The vector with the base profile's value of `GRADED`. `overall` leaves it out."""

_NO_GRADE: Final = "no grade: the grader gave none, and overall needs one"


class GradedProfile:
    """The base profile with a model's grade in place of its exploratory vector.

    The grade is a part of the exchange, so this profile is pure as any other.
    """

    def __init__(self, base: Profile) -> None:
        """`base` measures `exploratory`, and counts nothing."""
        self.base = base
        self.name = base.name + SUFFIX
        self.vectors = (*base.vectors, HEURISTIC)
        self.weights = Weights()
        self._graded = base.vectors.index(GRADED)

    @property
    def overall_formula(self) -> str:
        combined = combining(self.base)
        formula = combined.overall_formula if combined else f"the mean of {self._measured}"
        return f"{formula}; none without a grade"

    @property
    def _measured(self) -> str:
        return ", ".join(self.base.vectors)

    def may_score(self, status: Status, visible_tokens: float | None) -> bool:
        """Score what the base profile scores."""
        return self.base.may_score(status, visible_tokens)

    def measure(self, exchange: Exchange) -> tuple[float | None, ...]:
        values = list(self.base.measure(exchange))
        heuristic, values[self._graded] = values[self._graded], exchange.grade
        return (*values, heuristic)

    def combine(self, values: tuple[float | None, ...], dimension: str | None) -> float | None:
        """Return the overall of the base profile, given the grade; None without a grade."""
        of_base = values[:-1]
        if of_base[self._graded] is None:
            return None
        combined = combining(self.base)
        if combined is not None:
            return combined.combine(of_base, dimension)
        return overall(of_base, self.base.weights.of(dimension, self.base.vectors))

    def evidence(self, exchange: Exchange) -> Evidence:
        evidence = self.base.evidence(exchange)
        grade = exchange.grade
        sentence = _NO_GRADE if grade is None else f"graded by a model: {grade:.2f}"
        facts = {**evidence.facts, GRADED: Fact(sentence), HEURISTIC: evidence.facts[GRADED]}
        return replace(evidence, facts=facts)

    def describe(self) -> tuple[VectorDescription, ...]:
        described = list(self.base.describe())
        heuristic = described[self._graded]
        described[self._graded] = VectorDescription(
            name=GRADED,
            meaning=(
                "1.00 leaves all thinking to the student, 0.00 leaves none, as a model grades it "
                "by a fixed rubric."
            ),
            formula="the grade, a whole number from 0 to 10, divided by 10",
            examples=(),
            ranges=heuristic.ranges,
        )
        return (*described, replace(heuristic, name=HEURISTIC))

    def legend(self) -> tuple[SpanKind, ...]:
        return self.base.legend()
