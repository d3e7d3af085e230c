"""Which experiment a text means: an id, the start of one, an occasion or a name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.errors import AmbiguousExperiment, UnknownExperiment
from socratic_bench.results.experiment_choice import find_experiment, matching
from tests.contract.store.facts import MONDAY, an_experiment
from tests.dashboard.seeding import experiment, tutors


def named(name: str, **given: Any) -> Experiment:
    planned = an_experiment(**given)
    manifest = planned.manifest.model_copy(update={"name": name})
    return planned.model_copy(update={"manifest": manifest})


async def test_an_id_may_be_shortened_as_long_as_only_one_begins_like_that(store: MemoryStore):
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
    with pytest.raises(AmbiguousExperiment, match=r"'exp-' could be 7 experiments: .*, …; write"):
        await find_experiment(store, "exp-")


async def test_an_occasion_or_a_name_means_the_only_experiment_that_has_it(store: MemoryStore):
    first, second = named("pilot", occasion="week 1"), named("main study", occasion="week 2")
    both = named("pilot", occasion="main study")
    for each in (first, second, both):
        await store.register(each)

    assert await find_experiment(store, "week 1") == first
    assert await find_experiment(store, "week 2") == second
    with pytest.raises(AmbiguousExperiment) as several:
        await find_experiment(store, "main study")
    assert first.experiment_id not in str(several.value)
    assert {second.experiment_id, both.experiment_id} <= set(str(several.value).split())
    assert str(several.value).endswith("write the id of one, or 'main study~0' for the newest")


async def test_a_number_behind_a_name_counts_back_from_the_newest(store: MemoryStore):
    weeks = [
        an_experiment(occasion="nightly", created_at=MONDAY + timedelta(days=n), repeats=n + 1)
        for n in range(3)
    ]
    tilde = an_experiment(occasion="odd~1")
    for each in (*weeks, tilde):
        await store.register(each)
    for back, each in enumerate(reversed(weeks)):
        assert await find_experiment(store, f"nightly~{back}") == each
    assert await find_experiment(store, "odd~1") == tilde
    for wrong in ("nightly~3", "nightly~x", "~0"):
        with pytest.raises(UnknownExperiment, match="there is no experiment"):
            await find_experiment(store, wrong)


async def test_a_whole_id_means_its_experiment_whatever_others_are_called(store: MemoryStore):
    wanted = an_experiment()
    await store.register(wanted)
    await store.register(an_experiment(occasion=wanted.experiment_id))
    assert await find_experiment(store, wanted.experiment_id) == wanted


@pytest.mark.parametrize("wrong", ["exp-nowhere", "", "%", "None"])
async def test_a_text_that_fits_none_is_an_error(store: MemoryStore, wrong: str):
    await store.register(an_experiment())
    with pytest.raises(UnknownExperiment, match="there is no experiment"):
        await find_experiment(store, wrong)


async def test_a_deleted_experiment_is_told_of(store: MemoryStore):
    planned = an_experiment()
    await store.register(planned)
    await store.change_state(planned.experiment_id, ExperimentState.DELETED)
    with pytest.raises(UnknownExperiment, match="was deleted"):
        await find_experiment(store, planned.experiment_id)


def test_a_search_finds_words_in_names_and_the_begin_of_an_id() -> None:
    outlines = [
        ExperimentOutline.of(experiment(tutors(3), occasion=f"Week {letter}")) for letter in "abc"
    ]
    id_ = outlines[1].experiment_id

    assert matching(outlines, "") == outlines
    assert matching(outlines, "WEEK b") == [outlines[1]]
    assert matching(outlines, "tutor-1 week") == outlines
    assert matching(outlines, id_) == matching(outlines, id_[4:12]) == [outlines[1]]
    assert matching(outlines, id_[6:]) == []
