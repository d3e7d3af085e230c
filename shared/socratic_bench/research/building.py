"""Builds a validity report from sets of labelled responses.

Intervals are percentiles (Efron and Tibshirani 1993, chapter 13; Field and Welsh 2007 for
clusters).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from socratic_bench.errors import InvalidInput
from socratic_bench.research.agreement_measures import (
    Separation,
    auc_within,
    coarsened,
    halved_kappa,
    spearman,
)
from socratic_bench.research.columns import Figures, ProfileColumns, dimension_of
from socratic_bench.research.gaming import UNSOLVED, gaming_table
from socratic_bench.research.labelled import LabelledResponse, LabelledSet
from socratic_bench.research.validity_report import (
    FEWEST_GROUPS,
    FEWEST_TO_JUDGE,
    Ablation,
    ColumnFigures,
    ConstantBaseline,
    DataSet,
    Gaming,
    Interval,
    LabelFigures,
    Paired,
    ValidityReport,
)
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__

CONFIDENCE: Final = 0.95


def group_draws(groups: int, resamples: int, seed: int) -> list[list[float]]:
    """Return how often each group is drawn, for each resample; a seed always gives the same."""
    source = random.Random(seed)  # noqa: S311 - statistics, not secrets
    draws = []
    for _ in range(resamples):
        weights = [0.0] * groups
        for drawn in source.choices(range(groups), k=groups):
            weights[drawn] += 1.0
        draws.append(weights)
    return draws


def percentile_interval(samples: Iterable[float | None]) -> tuple[float, float] | None:
    """Return the 95 % interval of resampled figures; None where fewer than twenty exist."""
    found = sorted(sample for sample in samples if sample is not None)
    if len(found) < 20:
        return None
    tail = (1 - CONFIDENCE) / 2
    return _quantile(found, tail), _quantile(found, 1 - tail)


def _quantile(found: list[float], share: float) -> float:
    place = share * (len(found) - 1)
    below = int(place)
    above = min(below + 1, len(found) - 1)
    return found[below] + (place - below) * (found[above] - found[below])


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


class LabelledColumns:
    """The responses of a set with one label, and every column of theirs."""

    def __init__(
        self,
        data: str,
        label: str,
        responses: Sequence[LabelledResponse],
        profiles: Sequence[ProfileColumns],
        meant: Mapping[str, str],
    ) -> None:
        self.data, self.label = data, label
        self._dimension = dimension_of(label, profiles[-1].name, meant)
        self._kept = [row for row, each in enumerate(responses) if label in each.labels]
        self._profiles = profiles
        self.responses = [responses[row] for row in self._kept]
        self.labels = [each.labels[label] for each in self.responses]
        self.of_profiles: dict[str, Figures] = {
            name: self._of_label(column)
            for profile in profiles
            for name, column in profile.columns().items()
        }
        judged = [each.judges.get(label, {}) for each in self.responses]
        self.of_judges: dict[str, Figures] = {
            judge: [each.get(judge) for each in judged]
            for judge in sorted(set[str]().union(*judged))
        }

    def figures(self, resamples: int, seed: int) -> LabelFigures:
        """Return the figures of every column."""
        resampled = Resampled(self.label, self.responses, resamples=resamples, seed=seed)
        first = f"{self._profiles[0].name} {OVERALL}"
        others = {first: self.of_profiles[first], **self.of_judges}
        columns = tuple(
            self._column(name, figures, others, resampled)
            for name, figures in {**self.of_profiles, **self.of_judges}.items()
        )
        judges = [each for each in columns if each.column in self.of_judges and each.auc]
        best = max(judges, key=lambda each: each.auc or 0.0, default=None)
        if best is not None:
            columns = tuple(self._beside(each, self.of_judges[best.column]) for each in columns)
        return LabelFigures(
            data=self.data,
            label=self.label,
            n=len(self.labels),
            positives=sum(self.labels),
            groups=resampled.groups,
            dimension=self._dimension,
            best_judge=best.column if best else None,
            columns=columns,
            ablation=tuple(self._ablation(resampled)),
        )

    def _of_label(self, column: Figures) -> Figures:
        return [column[row] for row in self._kept]

    def _column(
        self,
        name: str,
        figures: Figures,
        others: Mapping[str, Figures],
        resampled: Resampled,
    ) -> ColumnFigures:
        rows = [row for row, figure in enumerate(figures) if figure is not None]
        known = [figures[row] or 0.0 for row in rows]
        labels = [self.labels[row] for row in rows]
        said = [self.responses[row] for row in rows]
        finer = [each.ordinal.get(self.label, each.labels[self.label]) for each in said]
        auc, interval = resampled.auc(figures)
        halved = halved_kappa(known, labels, [half_of(each.group) for each in said])
        pairs = (
            resampled.paired(other, figures, column)
            for other, column in others.items()
            if other != name
        )
        return ColumnFigures(
            column=name,
            n=len(rows),
            auc=auc,
            interval=interval,
            spearman=spearman(known, finer),
            cuts=None if halved is None else halved.cuts,
            kappa=None if halved is None else halved.kappa,
            within_tutor=auc_within(known, labels, [each.tutor for each in said]),
            within_source=auc_within(known, labels, [each.source for each in said]),
            differences=tuple(pair for pair in pairs if pair),
        )

    def _beside(self, column: ColumnFigures, judge: Figures) -> ColumnFigures:
        """Add the AUC of a profile's column in as many levels as the best judge has."""
        figures = self.of_profiles.get(column.column)
        if figures is None:
            return column
        rows = [
            (figure, verdict, label)
            for figure, verdict, label in zip(figures, judge, self.labels, strict=True)
            if figure is not None and verdict is not None
        ]
        levels = coarsened([each[0] for each in rows], [each[1] for each in rows])
        labels = [label for *_, label in rows]
        auc = Separation(levels, labels, [0] * len(rows), 1).auc()
        return column.model_copy(update={"as_coarse": auc})

    def _ablation(self, resampled: Resampled) -> Iterator[Ablation]:
        """Yield what each vector adds; vectors that the overall leaves out are left out here."""
        for profile in self._profiles:
            whole = self._of_label(profile.column(OVERALL))
            for vector in profile.profile.vectors:
                without = profile.without(vector)
                if without is None or (kept := self._of_label(without)) == whole:
                    continue
                if pair := resampled.paired(OVERALL, kept, whole):
                    yield Ablation(
                        profile=profile.name,
                        vector=vector,
                        difference=pair.difference,
                        interval=pair.interval,
                    )


def half_of(group: str) -> int:
    """Return the half of a group: the last bit of the SHA-256 of its name in UTF-8."""
    return hashlib.sha256(group.encode()).digest()[-1] & 1


def validity_report(
    sets: Sequence[LabelledSet], profiles: Sequence[str], *, resamples: int, seed: int
) -> ValidityReport:
    """Return the report: the first profile is the one that the others are compared with.

    Raises UnknownProfile, BrokenPlugin, BrokenProfile, or InvalidInput where two sets or two
    profiles share a name.
    """
    names = [each.name for each in sets]
    for what, given in (("data set", names), ("profile", list(profiles))):
        if len(set(given)) < len(given):
            raise InvalidInput(f"each {what} needs a name of its own; given: {', '.join(given)}")
    measured = {
        each.name: [ProfileColumns(profile, each.responses) for profile in profiles]
        for each in sets
    }
    columns = [
        LabelledColumns(each.name, label, each.responses, measured[each.name], each.meant)
        for each in sets
        for label in sorted({label for response in each.responses for label in response.labels})
    ]
    return ValidityReport(
        version=__version__,
        profiles=tuple(profiles),
        resamples=resamples,
        seed=seed,
        data=tuple(_data_set(each, measured[each.name][0]) for each in sets),
        labels=tuple(each.figures(resamples, seed) for each in columns),
        constant=tuple(
            _constant(name, profile) for name, found in measured.items() for profile in found
        ),
        gaming=_gaming(profiles),
    )


def _data_set(labelled: LabelledSet, first: ProfileColumns) -> DataSet:
    return DataSet(
        name=labelled.name,
        responses=len(labelled.responses),
        unscored=first.unscored,
        problems=labelled.problems,
    )


def _constant(data: str, profile: ProfileColumns) -> ConstantBaseline:
    pairs = [
        (constant, own)
        for constant, own in zip(profile.constant, profile.column(OVERALL), strict=True)
        if constant is not None and own is not None
    ]
    count = len(pairs) or 1
    return ConstantBaseline(
        data=data,
        profile=profile.name,
        constant=sum(constant for constant, _ in pairs) / count,
        responses=sum(own for _, own in pairs) / count,
        beaten=sum(own < constant for constant, own in pairs) / count,
    )


def _gaming(profiles: Sequence[str]) -> tuple[Gaming, ...]:
    tables = {profile: gaming_table(profile) for profile in profiles}
    return tuple(
        Gaming(
            reply=reply,
            is_solved=reply not in UNSOLVED,
            overall={profile: table[reply] for profile, table in tables.items()},
        )
        for reply in next(iter(tables.values()), {})
    )
