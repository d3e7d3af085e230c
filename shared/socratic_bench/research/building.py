"""Builds a validity report from sets of labelled responses."""

from __future__ import annotations

from collections.abc import Sequence

from socratic_bench.errors import InvalidInput
from socratic_bench.research.columns import ProfileColumns
from socratic_bench.research.gaming import UNSOLVED, gaming_table
from socratic_bench.research.label_figures import LabelledColumns
from socratic_bench.research.labelled import LabelledSet
from socratic_bench.research.validity_report import (
    ConstantBaseline,
    DataSet,
    Gaming,
    ValidityReport,
)
from socratic_bench.scoring.profile import OVERALL
from socratic_bench.version import __version__


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
