"""A validity report: the figures of profiles and LLM judges beside people's labels."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from socratic_bench.results.pages import rendered
from socratic_bench.scoring.profile import OVERALL

Interval = tuple[float, float]


FEWEST_GROUPS: Final = 5
"""Groups below which a bootstrap over them has no interval."""

FEWEST_TO_JUDGE: Final = 10
"""Groups below which nothing is said to be ahead."""


class _ReportPart(BaseModel):
    model_config = ConfigDict(frozen=True)


class Paired(_ReportPart):
    """A column's AUC minus another column's, on the responses of both."""

    other: str
    difference: float
    interval: Interval | None
    is_judged: bool = Field(default=True, exclude_if=lambda each: each)
    """Whether enough groups tell which column is ahead; left out if they do."""

    @property
    def verdict(self) -> str:
        """Say which column is ahead, or that chance may explain the difference."""
        if not self.is_judged:
            return "too few groups to tell"
        if self.interval is None or self.interval[0] <= 0.0 <= self.interval[1]:
            return "may be chance"
        return "ahead" if self.difference > 0 else "loss"


class ColumnFigures(_ReportPart):
    """What one column is worth for one label."""

    column: str
    n: int
    """Responses with a label and a figure."""

    auc: float | None
    interval: Interval | None
    """95 %, by a bootstrap over groups; None with fewer than five."""

    spearman: float | None
    """With people's finer answers, where there are any, else with the label."""

    cuts: tuple[float, float] | None
    """The cut for each half of the groups, chosen on the other half; None where a half has but one
    class."""

    kappa: float | None
    """Of the label and the figures at or above the cut."""

    within_tutor: float | None
    """The AUC over pairs of responses by the same tutor."""

    as_coarse: float | None = Field(default=None, exclude_if=lambda each: each is None)
    """The AUC in as many levels as the best LLM judge has, with its shares; left out without one.
    A judge that says 0, 1 or 2 ties pairs that finer figures tell apart."""

    within_source: float | None
    differences: tuple[Paired, ...]

    def against(self, other: str) -> Paired | None:
        """Return the difference from another column by its name."""
        return next((each for each in self.differences if each.other == other), None)


class Ablation(_ReportPart):
    """The AUC of a profile's overall without one vector, minus that with it."""

    profile: str
    vector: str
    difference: float
    interval: Interval | None


class LabelFigures(_ReportPart):
    """All columns for one label of one set."""

    data: str
    label: str
    n: int
    positives: int
    groups: int
    dimension: str
    """The column that the definition of the profile means for the label."""

    best_judge: str | None
    columns: tuple[ColumnFigures, ...]
    ablation: tuple[Ablation, ...]

    def column(self, name: str) -> ColumnFigures | None:
        """Return the figures of a column by its name."""
        return next((each for each in self.columns if each.column == name), None)


class ConstantBaseline(_ReportPart):
    """One generic question in place of every response of a set."""

    data: str
    profile: str
    constant: float
    """Its mean overall."""

    responses: float
    """The mean overall of the set's own responses."""

    beaten: float
    """The share of the set's responses that score less than the constant reply in their place."""


class Gaming(_ReportPart):
    """The mean overall of one kind of reply, by profile."""

    reply: str
    is_solved: bool
    overall: dict[str, float]


class DataSet(_ReportPart):
    """A file that was read."""

    name: str
    responses: int
    unscored: int
    problems: tuple[str, ...]


class ValidityReport(_ReportPart):
    """The whole report."""

    version: str | None
    """Of this software; None in the short form, where the profiles' names say enough."""

    profiles: tuple[str, ...]
    resamples: int
    seed: int
    data: tuple[DataSet, ...]
    labels: tuple[LabelFigures, ...]
    constant: tuple[ConstantBaseline, ...]
    gaming: tuple[Gaming, ...]

    def summary(self) -> ValidityReport:
        """Return the report with the columns of its first table alone.

        The overalls, the columns that are meant for the labels, and the best LLM judges stay.
        """
        overalls = {f"{profile} {OVERALL}" for profile in self.profiles}
        labels = tuple(
            each.model_copy(
                update={
                    "columns": tuple(
                        column
                        for column in each.columns
                        if column.column in {*overalls, each.dimension, each.best_judge}
                    ),
                    "ablation": (),
                }
            )
            for each in self.labels
        )
        return self.model_copy(update={"labels": labels, "version": None})


@cache
def published_figures() -> ValidityReport:
    """Return the published report, in its short form."""
    text = files("socratic_bench.research").joinpath("figures.json").read_bytes()
    return ValidityReport.model_validate_json(text)


ROW: Final = 20
GAP: Final = 12
"""Units of the plot between two columns, and besides between two labels."""


def validity_page(report: ValidityReport) -> str:
    """Return the page. Raises MissingExtra without Jinja."""
    plotted: list[tuple[int, LabelFigures, list[tuple[int, ColumnFigures]]]] = []
    y = 24
    for label in report.labels:
        names = [*(f"{profile} {OVERALL}" for profile in report.profiles), label.dimension]
        found = (label.column(name) for name in dict.fromkeys([*names, label.best_judge or ""]))
        columns = [(y + ROW * place, each) for place, each in enumerate(filter(None, found))]
        plotted.append((y, label, columns))
        y += ROW * len(columns) + GAP
    return rendered(
        "validity",
        "Validity report",
        report=report,
        overall=OVERALL,
        plotted=plotted,
        height=y + 16,
        x=_x,
    )


def _x(auc: float) -> float:
    """Return the place of an AUC; the axis begins at 0.3, and lower ones stand at its start."""
    return round(450 + (max(auc, 0.3) - 0.3) / 0.7 * 620, 1)
