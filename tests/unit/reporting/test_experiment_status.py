"""How far an experiment is, when it is late, and which one a shortened id means."""

from __future__ import annotations

from datetime import timedelta

import pytest

from socratic_bench.domain.manifest import Experiment
from socratic_bench.errors import UnknownExperiment
from socratic_bench.ports.store import Progress
from socratic_bench.reporting.experiment_status import (
    ExperimentStatus,
    State,
    find_experiment,
    model_progress,
)
from tests.contract.store.facts import MINUTE, MONDAY, a_failure, a_score, an_experiment


def due_in(hours: float, experiment: Experiment) -> Experiment:
    manifest = experiment.manifest.model_copy(update={"deadline_hours": hours})
    return experiment.model_copy(update={"manifest": manifest})


PLANNED = due_in(2, an_experiment())
DEADLINE = MONDAY + timedelta(hours=2)


def test_the_deadline_counts_from_the_creation():
    assert PLANNED.deadline_at == DEADLINE


@pytest.mark.parametrize(
    ("now", "done", "state"),
    [
        (MONDAY, 0, State.AT_WORK),
        (DEADLINE - MINUTE, 11, State.AT_WORK),
        (DEADLINE, 11, State.OVERDUE),
        (DEADLINE + MINUTE, 0, State.OVERDUE),
        (MONDAY, 12, State.COMPLETE),
        (DEADLINE + MINUTE, 12, State.COMPLETE),
    ],
)
def test_an_experiment_is_overdue_from_its_deadline_on_unless_all_is_done(now, done, state):
    status = ExperimentStatus.at(now, PLANNED, Progress(planned=12, done=done, failed=0))
    assert (status.state, status.left) == (state, 12 - done)


async def test_registering_again_puts_the_deadline_off_and_keeps_the_id(store):
    await store.register(PLANNED)
    later = due_in(3, PLANNED).model_copy(update={"created_at": MONDAY + 30 * MINUTE})
    assert later.experiment_id == PLANNED.experiment_id

    stored = await store.register(later)

    assert stored.deadline_at == MONDAY + timedelta(hours=3)
    assert [stored] == list(await store.experiments())


async def test_progress_by_model_adds_up_to_the_progress_of_the_experiment(store):
    await store.register(PLANNED)
    first, second, third, fourth, *_ = PLANNED.runs()
    await store.fold(
        [a_score(first), a_score(third), a_score(fourth, profile="other-v1")], [a_failure(second)]
    )

    models = await model_progress(store, PLANNED)

    assert [(each.model_id, each.planned, each.done, each.failed) for each in models] == [
        ("reference/tutor-0", 6, 2, 0),
        ("reference/tutor-1", 6, 1, 1),
    ]


async def test_an_id_may_be_shortened_as_long_as_only_one_begins_like_that(store):
    weeks = [an_experiment(occasion=f"week {week}") for week in range(7)]
    for week in weeks:
        await store.register(week)
    wanted = weeks[0]
    shortest = next(
        prefix
        for prefix in (wanted.experiment_id[:end] for end in range(1, 21))
        if sum(each.experiment_id.startswith(prefix) for each in weeks) == 1
    )

    assert await find_experiment(store, wanted.experiment_id) == wanted
    assert await find_experiment(store, shortest) == wanted
    with pytest.raises(UnknownExperiment, match=r"'exp-' could be 7 experiments: .*, …; write"):
        await find_experiment(store, "exp-")


@pytest.mark.parametrize("wrong", ["exp-nowhere", "", "%"])
async def test_an_id_that_none_begins_with_is_an_error(store, wrong):
    await store.register(PLANNED)
    with pytest.raises(UnknownExperiment, match="there is no experiment"):
        await find_experiment(store, wrong)
