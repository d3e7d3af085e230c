"""The columns of exported tables: each has a name and a type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.version import __version__

Record = Mapping[str, Any]
"""A row: a value for each column, in their order; None is unknown, never zero."""


class Kind(StrEnum):
    """What the values of a column are."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    MOMENT = "moment"
    """A point in time, as ISO 8601 with its offset from UTC."""


class Column(NamedTuple):
    """A column. Every column may hold None."""

    name: str
    kind: Kind


def texts(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, Kind.TEXT) for name in names)


def integers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, Kind.INTEGER) for name in names)


def numbers(names: Iterable[str]) -> tuple[Column, ...]:
    return tuple(Column(name, Kind.NUMBER) for name in names)


RUN: Final = (
    *texts("run_id", "model_id", "scenario_id", "dimension"),
    *integers("repeat", "turn"),
)
"""The columns that say which turn of which run a record is about."""

ORIGIN: Final = (
    *texts("experiment_id", "occasion"),
    Column("created_at", Kind.MOMENT),
    *texts("conditions", "profile", "version"),
)
"""The columns that say where a record comes from; every table ends with them."""


def origin(experiment: Experiment, profile: str | None) -> Record:
    """Return the values of the columns ORIGIN; `profile` is None for a table without scores."""
    return {
        "experiment_id": experiment.experiment_id,
        "occasion": experiment.occasion,
        "created_at": experiment.created_at.isoformat(),
        "conditions": experiment.conditions_id,
        "profile": profile,
        "version": __version__,
    }
