"""The AUC of columns for one label, and of their differences, over draws of groups."""

from __future__ import annotations

from collections.abc import Sequence

from socratic_bench.domain.agreement.separation import Separation
from socratic_bench.reporting.validity.columns import Figures
from socratic_bench.reporting.validity.group_bootstrap import group_draws, percentile_interval
from socratic_bench.reporting.validity.labelled import LabelledResponse
from socratic_bench.reporting.validity.report import (
    FEWEST_GROUPS,
    FEWEST_TO_JUDGE,
    Interval,
    Paired,
)


class Resampled:
    """The responses with one label, and the draws of their groups: the same for all columns."""

    def __init__(
        self, label: str, responses: Sequence[LabelledResponse], *, resamples: int, seed: int
    ) -> None:
        self.labels = [each.labels[label] for each in responses]
        numbers: dict[str, int] = {}
        self._groups = [numbers.setdefault(each.group, len(numbers)) for each in responses]
        self.groups = len(numbers)
        self._draws = group_draws(self.groups, resamples, seed)
        self._known: dict[tuple[tuple[float | None, ...], tuple[int, ...]], _Samples] = {}

    def auc(self, figures: Figures) -> tuple[float | None, Interval | None]:
        """Return the AUC of a column and its interval."""
        rows = _rows_of(figures)
        samples = self._samples(figures, rows)
        return samples.auc, self._interval(samples.resampled, rows)

    def paired(self, other_name: str, figures: Figures, other: Figures) -> Paired | None:
        """Return a column's AUC minus the other's, on the responses that have both figures."""
        rows = tuple(sorted(set(_rows_of(figures)) & set(_rows_of(other))))
        one, two = self._samples(figures, rows), self._samples(other, rows)
        if one.auc is None or two.auc is None:
            return None
        differences = [
            None if first is None or second is None else first - second
            for first, second in zip(one.resampled, two.resampled, strict=True)
        ]
        return Paired(
            other=other_name,
            difference=one.auc - two.auc,
            interval=self._interval(differences, rows),
            is_judged=self._groups_in(rows) >= FEWEST_TO_JUDGE,
        )

    def _interval(self, resampled: Sequence[float | None], rows: Sequence[int]) -> Interval | None:
        """Return the interval of resampled figures; None with too few groups."""
        return percentile_interval(resampled) if self._groups_in(rows) >= FEWEST_GROUPS else None

    def _groups_in(self, rows: Sequence[int]) -> int:
        return len({self._groups[row] for row in rows})

    def _samples(self, figures: Figures, rows: tuple[int, ...]) -> _Samples:
        key = (tuple(figures), rows)
        if key not in self._known:
            known = [figures[row] or 0.0 for row in rows]
            labels, groups = self.labels, self._groups
            separation = Separation(
                known, [labels[row] for row in rows], [groups[row] for row in rows], self.groups
            )
            self._known[key] = _Samples(separation, self._draws)
        return self._known[key]


class _Samples:
    def __init__(self, separation: Separation, draws: Sequence[Sequence[float]]) -> None:
        self.auc = separation.auc()
        self.resampled = [separation.auc(weights) for weights in draws]


def _rows_of(figures: Figures) -> tuple[int, ...]:
    return tuple(row for row, figure in enumerate(figures) if figure is not None)
