"""Conversion of the predecessor's scores, 0 to 100, to the scale 0.0 to 1.0.

A record is old if it has one of the five dimensions that only the predecessor knew, or an
`overall` above 1. The keys decide first: an old 0.8 of 100 must not pass for 0.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEGACY_DIMENSIONS = frozenset(
    {"open_ended", "probing_depth", "non_directive", "age_appropriate", "content_relevant"}
)
_LEGACY_FIGURES = LEGACY_DIMENSIONS | {"overall", "overall_score"}
_LEGACY_MAXIMUM = 100
_NESTED = ("scores", "dimensions", "judge_scores")


def is_legacy(record: Mapping[str, Any]) -> bool:
    """Whether the figures of `record` are on the predecessor's scale of 0 to 100."""
    if LEGACY_DIMENSIONS & record.keys():
        return True
    nested = [record[key] for key in _NESTED if isinstance(record.get(key), Mapping)]
    if any(LEGACY_DIMENSIONS & inner.keys() for inner in nested):
        return True
    return any(
        _is_number(inner.get(key)) and inner[key] > 1
        for inner in (record, *nested)
        for key in ("overall", "overall_score")
    )


def on_unit_scale(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `record` with figures on 0.0 to 1.0; a new record stays as it is."""
    if not is_legacy(record):
        return dict(record)
    return _divided(record)


def legacy_scores(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the predecessor's figures in an old record, by name, on 0.0 to 1.0.

    Raises ValueError for a figure outside of 0 to 100.
    """
    found: dict[str, float] = {}
    nested = [record[key] for key in _NESTED if isinstance(record.get(key), Mapping)]
    for figures in (record, *nested):
        for name in sorted(_LEGACY_FIGURES & figures.keys()):
            figure = figures[name]
            if not _is_number(figure):
                continue
            if not 0 <= figure <= _LEGACY_MAXIMUM:
                raise ValueError(f"{name}: an old score runs from 0 to {_LEGACY_MAXIMUM}")
            found[name] = figure / _LEGACY_MAXIMUM
    return found


def _divided(record: Mapping[str, Any]) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    for key, value in record.items():
        if key in _NESTED and isinstance(value, Mapping):
            converted[key] = _divided(value)
        elif key in _LEGACY_FIGURES and _is_number(value):
            converted[key] = value / _LEGACY_MAXIMUM
        else:
            converted[key] = value
    return converted


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
