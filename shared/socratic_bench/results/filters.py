"""The filters of results: models, a dimension, and the time at which experiments were created."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.errors import InvalidInput
from socratic_bench.invalid_values import likely, quoted
from socratic_bench.results.formats import moment, printable

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Filters:
    """The results that a reader wants to see; the default wants all.

    They choose experiments first: those created in the time that ask one of the models and have the
    dimension. Of these, figures are those of the dimension alone. Raises InvalidInput for a time
    that ends before it begins.
    """

    # D-417: the time is that of experiments, whose outlines are in memory.
    models: tuple[str, ...] = ()
    """The ids of the models to show, or their names until `by_id`; empty: all of them."""

    dimension: str | None = None
    since: datetime | None = None
    """In UTC: experiments created at this time or later."""

    until: datetime | None = None
    """In UTC: experiments created before this time."""

    def __post_init__(self) -> None:
        if self.since and self.until and self.until <= self.since:
            raise InvalidInput(
                f"until: must be later than since; the time ends at {moment(self.until)} and "
                f"begins at {moment(self.since)}"
            )

    def __bool__(self) -> bool:
        """Whether there is a filter at all."""
        return self != EVERYTHING

    @property
    def key(self) -> tuple[str | None, ...]:
        """Texts that only the same filters give."""
        times = (None if at is None else at.isoformat() for at in (self.since, self.until))
        return (*times, self.dimension, *self.models) if self else ()

    def has_time(self, created_at: datetime) -> bool:
        """Whether an experiment created at this time fits."""
        begins = self.since is None or self.since <= created_at
        return begins and (self.until is None or created_at < self.until)

    def by_id(self, experiments: Sequence[ExperimentOutline]) -> Filters:
        """Return these filters with ids in place of names of models.

        Raises InvalidInput for a model that none of `experiments` has.
        """
        if not self.models or not experiments:
            return self
        return replace(self, models=model_ids(self.models, experiments))

    def fitting(self, experiments: Sequence[ExperimentOutline]) -> Sequence[ExperimentOutline]:
        """Return the experiments that fit, which may be none.

        Raises InvalidInput for a model or a dimension that none of `experiments` has.
        """
        if not self or not experiments:
            return experiments
        model_ids(self.models, experiments)
        if self.dimension is not None:
            named = (scenario.dimension for e in experiments for scenario in e.scenarios)
            require_known("dimension", self.dimension, named, "no experiment has a")
        return [each for each in experiments if self._fits(each)]

    def _fits(self, experiment: ExperimentOutline) -> bool:
        return (
            self.has_time(experiment.created_at)
            and (not self.models or not set(self.models).isdisjoint(experiment.model_ids))
            and self.dimension in {None, *(each.dimension for each in experiment.scenarios)}
        )

    def sentences(self, shown: Collection[str], experiments: int) -> str:
        """Say what is filtered, and how; `shown` are the models of the table."""
        told = f"Filtered: {'; '.join(self._parts())}."
        if not experiments:
            return f"{told} No experiment fits."
        if self.dimension is not None:
            told += " Every figure is that of this dimension alone."
        if self.models:
            told += " Ranks are those among all models of the table."
        if missing := [printable(model) for model in self.models if model not in shown]:
            told += f" Not in this table: {', '.join(missing)}."
        return told

    def _parts(self) -> Iterable[str]:
        if self.models:
            named = ", ".join(map(printable, self.models))
            yield f"{'model' if len(self.models) == 1 else 'models'} {named}"
        if self.dimension is not None:
            yield f"dimension {printable(self.dimension)}"
        if self.since is not None:
            yield f"experiments from {moment(self.since)} on"
        if self.until is not None:
            yield f"experiments before {moment(self.until)}"


EVERYTHING: Final = Filters()


def model_ids(wanted: Collection[str], experiments: Sequence[ExperimentOutline]) -> tuple[str, ...]:
    """Return the ids of the models that have one of these ids or names in an experiment.

    Raises InvalidInput for one that none has.
    """
    known = {id_ for each in experiments for id_ in each.model_ids}
    if known.issuperset(wanted):
        return tuple(dict.fromkeys(wanted))
    models = {model for each in experiments for model in each.models}
    named = sorted((each.id, each.model().display_name) for each in models)
    return ids_called("model", wanted, named, "no experiment has a")


def ids_called(
    what: str,
    wanted: Collection[str],
    named: Sequence[tuple[str, str]],
    told: Literal["no experiment has a", "the experiment has no"],
) -> tuple[str, ...]:
    """Return the ids of what has one of these ids, or else one of these names.

    `named` has the ids, each with a name for people. Raises InvalidInput for an unknown one.
    """
    ids, found = {id_ for id_, _ in named}, dict[str, None]()
    for each in wanted:
        called = [each] if each in ids else [id_ for id_, name in named if name and name == each]
        if not called:
            known = (text for pair in named for text in pair if text)
            require_known(what, each, known, told)
        found |= dict.fromkeys(called)
    return tuple(found)


def require_known(
    what: str,
    name: str,
    names: Iterable[str],
    told: Literal["no experiment has a", "the experiment has no"],
) -> None:
    """Raise InvalidInput, with a known name, unless `name` is one of `names`."""
    known = dict.fromkeys(names)
    if name not in known:
        raise InvalidInput(f"{what}: {told} {what} {name!r}; {likely(name, known)}")


Condition: TypeAlias = tuple[str, str]
"""A field of scenarios' metadata, and its value."""


def written_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Return written conditions such as `grade=7`. Raises InvalidInput."""
    conditions = []
    for text in texts:
        field, equals, value = text.partition("=")
        if not field or not equals:
            raise InvalidInput(f"where: must be a condition such as grade=7, not {quoted(text)}")
        conditions.append((field, value))
    return tuple(conditions)


def written_time(what: Literal["since", "until", "changed"], text: str) -> datetime:
    """Return a written time in UTC; a date means its end for `until`, and its begin otherwise.

    A time without an offset is in UTC. Raises InvalidInput.
    """
    try:
        time = datetime.fromisoformat(text)
        if _DATE.fullmatch(text) and what == "until":
            time += timedelta(days=1)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{what}: must be a date such as 2026-11-23 or a time such as 2026-11-23T12:00Z, "
            f"not {quoted(text)}"
        ) from None
