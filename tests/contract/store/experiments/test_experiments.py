"""Experiments are registered once, looked up, followed, and completed exactly once."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta, timezone
from decimal import Decimal

import pytest

from socratic_bench.domain.experiment.manifest import Experiment, Limits, Manifest, weighted_name
from socratic_bench.domain.experiment.outline import ExperimentOutline
from socratic_bench.domain.money import Price
from socratic_bench.ports.stores.experiments import ExperimentCounts
from socratic_bench.ports.stores.store import Store
from tests.contract.store.experiments.experiments import ended
from tests.contract.store.facts import (
    MINUTE,
    MONDAY,
    a_failure,
    a_response,
    a_score,
    an_experiment,
    failures_in,
    record_unleased,
)


def _with_other_prices(experiment: Experiment) -> Experiment:
    price = Price(input_per_million=Decimal("0.15"), output_per_million=Decimal("0.60"))
    changes = {"price": price, "name": "Renamed", "limits": Limits(concurrency=7)}
    models = tuple(model.model_copy(update=changes) for model in experiment.manifest.models)
    manifest = experiment.manifest.model_copy(update={"models": models})
    return Experiment(
        manifest=manifest,
        occasion=experiment.occasion,
        created_at=experiment.created_at + MINUTE,
        completed_at=experiment.created_at + 2 * MINUTE,
    )


@pytest.mark.smoke
async def test_a_new_experiment_is_stored_as_it_is(store: Store) -> None:
    experiment = an_experiment(occasion="2026-W10", follow_ups=["Why?"])
    assert await store.register(experiment) == experiment
    assert await store.experiment(experiment.experiment_id) == experiment


async def test_any_character_may_be_in_what_is_asked_and_in_why_it_failed(store: Store) -> None:
    characters = "\0\x1f\u2028\ufffe🦉'\"\\"
    experiment = an_experiment(follow_ups=[characters])
    run, *_ = experiment.runs()
    failure = a_failure(run).model_copy(update={"message": characters})
    await store.register(experiment)
    await store.fold([], [failure])
    assert await store.experiment(experiment.experiment_id) == experiment
    assert await failures_in(store, experiment.experiment_id) == [failure]


async def test_an_experiment_that_is_not_there_is_none(store: Store) -> None:
    assert await store.experiment("exp-unknown") is None


async def test_registering_again_brings_prices_limits_and_names_up_to_date(store: Store) -> None:
    experiment = an_experiment()
    repriced = _with_other_prices(experiment)
    await store.register(experiment)
    stored = await store.register(repriced)
    assert stored.manifest == repriced.manifest
    assert stored == await store.experiment(experiment.experiment_id)


async def test_a_caller_that_changes_its_plan_changes_nothing_stored(store: Store) -> None:
    given = an_experiment()
    stored = await store.register(given)
    given.manifest.models[0].options["latency_ms"] = 7
    assert await store.experiment(stored.experiment_id) == stored == an_experiment()


async def test_a_caller_that_changes_what_it_read_changes_it_for_no_other(store: Store) -> None:
    stored = await store.register(an_experiment())
    for _ in range(2):
        [read] = await store.experiments()
        [outline] = await store.outlines()
        for model in (read.manifest.models[0], outline.models[0].model()):
            assert model.options == {}
            model.options["latency_ms"] = 7
    assert await store.experiment(stored.experiment_id) == stored == an_experiment()


async def test_the_first_name_and_the_notes_given_last_are_kept(store: Store) -> None:
    def named(**changes: str) -> Experiment:
        plain = an_experiment()
        return plain.model_copy(update={"manifest": plain.manifest.model_copy(update=changes)})

    assert (await store.register(an_experiment())).manifest.name is None
    await store.register(named(name="A pilot", notes="Of two models."))
    await store.register(named(name="The pilot", notes="Of three models."))
    stored = (await store.register(an_experiment())).manifest
    assert (stored.name, stored.notes) == ("A pilot", "Of three models.")
    [outline] = await store.outlines()
    assert (outline.name, outline.notes) == ("A pilot", "Of three models.")


async def test_every_weighting_that_was_named_is_kept(store: Store) -> None:
    def weighed(**weights: float) -> Experiment:
        plain, given = an_experiment(), {"student": weights}
        named = {weighted_name("socratic-v1", given): given} if weights else {}
        manifest = Manifest.model_validate({**plain.manifest.model_dump(), "weightings": named})
        return plain.model_copy(update={"manifest": manifest})

    asking, brief = weighed(interrogative=2.0), weighed(verbosity=3.0)
    assert (await store.register(asking)).manifest.weightings == asking.manifest.weightings
    await store.register(brief)
    stored = (await store.register(an_experiment())).manifest
    assert stored.weightings == {**asking.manifest.weightings, **brief.manifest.weightings}
    [outline] = await store.outlines()
    assert set(outline.weightings) == set(stored.weightings)


async def test_registering_again_keeps_the_times(store: Store) -> None:
    experiment = await ended(store, an_experiment())
    await store.complete(experiment.experiment_id, MONDAY + 10 * MINUTE)
    stored = await store.register(_with_other_prices(experiment))
    assert stored.created_at == MONDAY
    assert stored.completed_at == MONDAY + 10 * MINUTE


async def test_times_are_kept_to_the_microsecond_whatever_their_zone(store: Store) -> None:
    nepal = timezone(timedelta(hours=5, minutes=45))
    experiment = an_experiment(created_at=MONDAY.astimezone(nepal))
    assert (await store.register(experiment)).created_at == MONDAY


async def test_two_occasions_of_a_manifest_are_two_experiments(store: Store) -> None:
    await store.register(an_experiment(occasion="2026-W10"))
    await store.register(an_experiment(occasion="2026-W11"))
    assert len(await store.experiments()) == 2


async def test_experiments_come_newest_first(store: Store) -> None:
    weeks = [
        an_experiment(occasion=f"week {week}", created_at=MONDAY + week * 7 * 1440 * MINUTE)
        for week in (2, 0, 3, 1)
    ]
    for experiment in weeks:
        await store.register(experiment)
    occasions = [experiment.occasion for experiment in await store.experiments()]
    assert occasions == ["week 3", "week 2", "week 1", "week 0"]


async def test_registering_at_the_same_time_stores_one_experiment(
    store: Store, other_store: Store
) -> None:
    experiment = an_experiment()
    stored = await asyncio.gather(*(each.register(experiment) for each in (store, other_store) * 5))
    assert stored == [experiment] * 10
    assert await store.experiments() == [experiment]


async def test_the_revision_changes_with_every_change_and_only_then(store: Store) -> None:
    seen = [await store.revision()]
    experiment = an_experiment()
    run, failed, *_ = experiment.runs()

    async def changed() -> bool:
        seen.append(await store.revision())
        return seen[-1] not in seen[:-1]

    await store.register(experiment)
    assert await changed()
    await store.register(_with_other_prices(experiment))
    assert await changed()
    await store.fold([a_score(run)], [])
    assert await changed()
    await store.fold([], [a_failure(failed)])
    assert await changed()
    await store.fold([a_score(failed)], [])
    assert await changed()
    await store.fold([a_score(run) for run in experiment.runs()], [])
    assert await changed()
    await store.complete(experiment.experiment_id, MONDAY)
    assert await changed()

    await store.fold([a_score(run)], [a_failure(failed)])
    await store.mark_planned(experiment.experiment_id, MONDAY)
    await store.register(_with_other_prices(experiment))
    await store.complete(experiment.experiment_id, MONDAY)
    assert await store.revision() == seen[-1]


async def test_outlines_tell_of_every_experiment_as_it_is_now(store: Store) -> None:
    weeks = [
        an_experiment(occasion=f"week {week}", created_at=MONDAY + week * MINUTE)
        for week in (2, 0, 1)
    ]
    for experiment in weeks:
        await store.register(experiment)
    two, nought, one = weeks
    assert await store.outlines() == [ExperimentOutline.of(each) for each in (two, one, nought)]

    repriced = await store.register(_with_other_prices(one))
    await ended(store, nought)
    await store.complete(nought.experiment_id, MONDAY + 10 * MINUTE)
    assert (await store.outlines())[1] == ExperimentOutline.of(repriced)
    assert (await store.outlines())[2].completed_at == MONDAY + 10 * MINUTE


async def test_outlines_of_another_process_are_seen(store: Store, other_store: Store) -> None:
    experiment = an_experiment()
    assert await store.outlines() == []
    await other_store.register(experiment)
    assert [each.experiment_id for each in await store.outlines()] == [experiment.experiment_id]
    repriced = await other_store.register(_with_other_prices(experiment))
    assert await store.outlines() == [ExperimentOutline.of(repriced)]
    assert await store.experiments([experiment.experiment_id]) == [repriced]


async def test_experiments_are_found_by_their_ids_however_many_there_are(store: Store) -> None:
    weeks = [
        an_experiment(occasion=f"week {week}", created_at=MONDAY + week * MINUTE)
        for week in range(180)
    ]
    for experiment in weeks:
        await store.register(experiment)
    ids = [each.experiment_id for each in weeks]
    for _ in range(2):
        assert await store.experiments([*ids[3:], "exp-unknown"]) == weeks[:2:-1]
    assert await store.experiments([]) == []
    assert await store.experiments() == weeks[::-1]
    assert len(await store.outlines()) == 180


async def test_experiments_are_counted_by_how_they_stand(store: Store) -> None:
    assert await store.count_experiments() == ExperimentCounts(0, 0, 0, 0, 0)
    done, running = an_experiment(occasion="a"), an_experiment(occasion="b")
    exhausted = an_experiment(occasion="c", budget=1000)
    await ended(store, done)
    await store.complete(done.experiment_id, MONDAY)
    for experiment in (exhausted, running):
        await store.register(experiment)
    await store.exhaust(exhausted.experiment_id, 10**9)
    assert await store.count_experiments() == ExperimentCounts(
        complete=1, exhausted=1, paused=0, cancelled=0, running=1
    )


async def test_progress_and_spending_of_many_are_told_together(store: Store) -> None:
    first, second = an_experiment(occasion="a"), an_experiment(occasion="b")
    await ended(store, first)
    await store.register(second)
    ids = [first.experiment_id, second.experiment_id]
    asked = [*ids, "exp-unknown"]
    assert await store.progress_of(asked) == {id_: await store.progress(id_) for id_ in ids}
    assert await store.spending_of(asked) == {id_: await store.spending(id_) for id_ in ids}
    assert await store.progress_of([]) == {}
    assert await store.spending_of([]) == {}


async def test_failures_come_in_pages_and_are_counted_by_model_and_kind(store: Store) -> None:
    experiment = await store.register(an_experiment(repeats=150))
    runs = [*experiment.runs()]
    late = {"kind": "timeout", "message": "\0 \\\0 \\\\u0000 too late\\"}
    failures = [
        a_failure(run).model_copy(update=late if number % 3 else {"kind": "auth"})
        for number, run in enumerate(runs)
    ]
    await store.fold([], failures)
    answered = runs[0]
    await record_unleased(store, [a_response(answered)])

    pages = [page async for page in store.failure_rows(experiment.experiment_id)]
    assert len(pages) > 1
    assert [each for page in pages for each in page] == sorted(
        failures, key=lambda each: each.run.run_id
    )
    counted = Counter((each.run.model_id, each.kind) for each in failures if each.run != answered)
    kinds = await store.failure_kinds(experiment.experiment_id)
    assert {(each.model_id, each.kind): each.runs for each in kinds} == counted
    assert {each.message for each in kinds if each.kind == "timeout"} == {late["message"]}
    assert [each.model_id for each in kinds] == sorted(each.model_id for each in kinds)

    asked = [run.run_id for run in runs[:3]]
    assert await store.failed_runs(experiment.experiment_id, [*asked, "run-x"]) == set(asked)
    assert await store.failed_runs("exp-unknown", asked) == set()


async def test_an_answered_turn_that_is_not_the_last_leaves_a_run_failed(store: Store) -> None:
    experiment = await store.register(an_experiment(follow_ups=["Why?"]))
    run, *_ = experiment.runs()
    await record_unleased(store, [a_response(run, last_turn=False)])
    await store.fold([], [a_failure(run)])
    [failed] = await store.failure_kinds(experiment.experiment_id)
    assert (failed.model_id, failed.runs) == (run.model_id, 1)


async def test_a_run_that_was_answered_to_its_end_after_a_failure_is_not_failed(
    store: Store,
) -> None:
    experiment = await store.register(an_experiment(follow_ups=["Why?", "How?"]))
    runs = [*experiment.runs()][:6]
    responses = [
        a_response(run, turn=turn, last_turn=turn == 3)
        for number, run in enumerate(runs)
        for turn in range(1, 1 + number % 4)
    ]
    await record_unleased(store, responses)
    await store.fold([], [a_failure(run, turn=1 + number % 3) for number, run in enumerate(runs)])
    kinds = await store.failure_kinds(experiment.experiment_id)
    assert sum(each.runs for each in kinds) == len(runs) - 1


async def test_a_store_that_is_there_answers_a_ping(store: Store) -> None:
    await store.ping()
