"""The choice of the experiments that belong together in one table.

The default table holds one set of test conditions: figures under different ones do not compare. It
prefers full experiments to pilots and complete ones to running ones, so that a trial run replaces
no result. A person's pin overrules both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from socratic_bench.domain.aggregates.leaderboard import RowKey, Rows
from socratic_bench.domain.experiment.outline import ExperimentOutline


class LeftOutReason(StrEnum):
    """The reason why an experiment is not in a table."""

    NOT_PINNED = "not_pinned"
    """Another one is pinned."""

    OTHER_PROFILE = "other_profile"
    PILOT = "pilot"
    """It has half as many runs as the fullest one, or fewer."""

    OTHER_CONDITIONS = "other_conditions"
    NO_SCORE = "no_score"
    """It is complete, and none of its runs has a score."""

    INCOMPLETE = "incomplete"
    """Each of its models has a complete result under the same conditions."""

    OLDER = "older"
    """Each of its models has a newer result under the same conditions."""

    TOO_MANY = "too_many"
    """One table cannot hold it beside newer ones."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The rows of a table, and the experiments that it leaves out."""

    rows: Rows
    left_out: Mapping[str, LeftOutReason]
    """By the id of the experiment, newest first."""


def default_choice(experiments: Sequence[ExperimentOutline], done: Mapping[str, int]) -> Choice:
    """Choose one set of conditions, and each model's best experiment under them.

    `experiments` are newest first; `done` gives the done runs of those that are not complete. The
    latest pinned experiment decides about the conditions; pinned ones alone are then in the table.
    Without a pin the newest complete experiment decides that is no pilot.
    """
    if not experiments:
        return Choice({}, {})
    runs = {each.experiment_id: _done(each, done) for each in experiments}
    pinned = [each for each in experiments if each.pinned_at is not None]
    leading = (
        max(pinned, key=lambda each: each.pinned_at or each.created_at)
        if pinned
        else _preferred(experiments, lambda each: runs[each.experiment_id], runs)
    )
    together = [
        each for each in pinned or experiments if each.conditions_id == leading.conditions_id
    ]

    def runs_of_a_model(experiment: ExperimentOutline) -> float:
        return runs[experiment.experiment_id] / len(experiment.models)

    rows: dict[RowKey, tuple[ExperimentOutline, ...]] = {}
    for model_id in dict.fromkeys(id_ for each in together for id_ in each.model_ids):
        asking = [each for each in together if model_id in each.model_ids]
        best = _preferred(asking, runs_of_a_model, runs)
        rows[RowKey(model_id, best.conditions_id)] = (best,)
    shown = {each.experiment_id for chosen in rows.values() for each in chosen}
    fullest = max(runs.values())
    fullest_of_a_model = max(map(runs_of_a_model, together))

    def reason(experiment: ExperimentOutline) -> LeftOutReason:
        if pinned and experiment.pinned_at is None:
            return LeftOutReason.NOT_PINNED
        if experiment.conditions_id == leading.conditions_id:
            if _is_pilot(runs_of_a_model(experiment), fullest_of_a_model):
                return LeftOutReason.PILOT
            is_complete = runs[experiment.experiment_id] >= experiment.planned_runs
            return LeftOutReason.OLDER if is_complete else LeftOutReason.INCOMPLETE
        if experiment.profile != leading.profile:
            return LeftOutReason.OTHER_PROFILE
        is_pilot = _is_pilot(runs[experiment.experiment_id], fullest)
        return LeftOutReason.PILOT if is_pilot else LeftOutReason.OTHER_CONDITIONS

    return Choice(
        rows,
        {
            each.experiment_id: reason(each)
            for each in experiments
            if each.experiment_id not in shown
        },
    )


def every_choice(experiments: Sequence[ExperimentOutline]) -> Choice:
    """Choose all experiments of the newest one's profile: a row for each model and conditions.

    A row pools experiments under the same conditions. `experiments` are newest first.
    """
    profile = experiments[0].profile if experiments else None
    rows: dict[RowKey, tuple[ExperimentOutline, ...]] = {}
    for experiment in experiments:
        if experiment.profile == profile:
            for model_id in experiment.model_ids:
                key = RowKey(model_id, experiment.conditions_id)
                rows[key] = (*rows.get(key, ()), experiment)
    others = (each for each in experiments if each.profile != profile)
    return Choice(rows, {each.experiment_id: LeftOutReason.OTHER_PROFILE for each in others})


def within(choice: Choice, experiment_ids: Iterable[str]) -> Choice:
    """Leave out the experiments that one table cannot hold."""
    held = set(experiment_ids)
    rows = {
        key: kept
        for key, chosen in choice.rows.items()
        if (kept := tuple(each for each in chosen if each.experiment_id in held))
    }
    wanted = {each.experiment_id: each for chosen in choice.rows.values() for each in chosen}
    beyond = sorted(
        (each for id_, each in wanted.items() if id_ not in held),
        key=lambda each: (each.created_at, each.experiment_id),
        reverse=True,
    )
    return Choice(
        rows, {**choice.left_out, **{each.experiment_id: LeftOutReason.TOO_MANY for each in beyond}}
    )


def _done(experiment: ExperimentOutline, done: Mapping[str, int]) -> int:
    is_complete = experiment.completed_at is not None
    return experiment.planned_runs if is_complete else done.get(experiment.experiment_id, 0)


def _preferred(
    experiments: Sequence[ExperimentOutline],
    size: Callable[[ExperimentOutline], float],
    runs: Mapping[str, int],
) -> ExperimentOutline:
    """Return the newest complete experiment that is no pilot, or else the newest that is none."""
    fullest = max(map(size, experiments))
    full = [each for each in experiments if not _is_pilot(size(each), fullest)]
    complete = [each for each in full if runs[each.experiment_id] >= each.planned_runs]
    return (complete or full)[0]


def _is_pilot(size: float, fullest: float) -> bool:
    return size < fullest and 2 * size <= fullest
