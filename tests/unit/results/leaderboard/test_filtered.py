"""The leaderboard of a dimension, of some models and of a time."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.errors import InvalidInput
from socratic_bench.results.costs import cost_analysis
from socratic_bench.results.filters import Filters
from socratic_bench.results.leaderboard.leaderboard import model_comparison
from socratic_bench.results.leaderboard.text_formats import comparison_csv, comparison_markdown
from tests.dashboard.seeding import MONDAY, SCENARIOS, experiment, seed, tutors

WEEK = timedelta(weeks=1)
ETHICAL = Filters(dimension="ethical")
FIRST, SECOND = (model.id for model in tutors(4)[2:])


async def test_a_dimension_has_the_figures_of_an_experiment_that_asked_nothing_else(
    store: MemoryStore,
):
    planned = experiment(tutors(5))
    await seed(store, planned)

    found = await model_comparison(store, filters=ETHICAL)

    whole = {row.model_id: row for row in (await model_comparison(store)).models}
    assert found.dimensions == ("ethical",)
    assert {row.planned_runs for row in found.models} == {15}
    assert {row.total_runs for row in found.models} == {15}
    for row in found.models:
        of_dimension = whole[row.model_id].dimensions["ethical"]
        assert row.dimensions == {"ethical": of_dimension}
        assert row.overall_score == of_dimension.overall
        assert row.confidence_interval == of_dimension.interval
        assert row.coverage == of_dimension.coverage
    scores = [row.overall_score or 0.0 for row in found.models]
    assert scores == sorted(scores, reverse=True)
    assert found.winner == found.models[0].model_id


async def test_a_dimension_falsifies_no_progress_and_leaves_out_no_experiment(store: MemoryStore):
    planned = experiment(tutors(3))
    await seed(store, planned, share=0.5)

    [whole] = (await model_comparison(store)).experiments
    filtered = await model_comparison(store, filters=ETHICAL)

    assert filtered.experiments == (whole,)
    assert whole.done == round(whole.planned * 0.5)
    assert filtered.left_out == ()


async def test_the_constant_reply_of_a_dimension_is_scored_on_its_scenarios(store: MemoryStore):
    await seed(store, experiment(tutors(3)))

    whole = (await model_comparison(store)).baseline
    own = (await model_comparison(store, filters=ETHICAL)).baseline

    assert own.dimensions == {"ethical": whole.dimensions["ethical"]}
    assert own.overall_score == whole.dimensions["ethical"].overall


async def test_models_keep_the_ranks_of_the_whole_table_and_none_wins(store: MemoryStore):
    await seed(store, experiment(tutors(8)))
    whole = await model_comparison(store)
    chosen = [row for row in whole.models if row.model_id in {FIRST, SECOND}]

    found = await model_comparison(store, filters=Filters(models=(FIRST, SECOND)))

    assert list(found.models) == chosen
    assert whole.winner is not None
    assert found.winner is None
    assert found.filtered.known_models == tuple(row.model_id for row in whole.models)
    assert "Ranks are those among all models of the table." in found.filtered.told


async def test_a_model_that_the_newest_experiment_lacks_is_found_in_an_older_one(
    store: MemoryStore,
):
    old = experiment(tutors(4), occasion="old")
    new = experiment(tutors(3), occasion="new", created_at=MONDAY + WEEK)
    for planned in (old, new):
        await seed(store, planned)

    [row] = (await model_comparison(store, filters=Filters(models=(SECOND,)))).models

    assert row.experiment_ids == (old.experiment_id,)


async def test_a_time_chooses_among_experiments(store: MemoryStore):
    weeks = [
        experiment(tutors(3), occasion=f"{week}", created_at=MONDAY + week * WEEK)
        for week in range(3)
    ]
    for planned in weeks:
        await seed(store, planned)

    found = await model_comparison(store, filters=Filters(until=MONDAY + WEEK))
    pooled = await model_comparison(store, "all", filters=Filters(since=MONDAY + WEEK))

    assert [each.experiment_id for each in found.experiments] == [weeks[0].experiment_id]
    assert found.left_out == ()
    assert [each.occasion for each in pooled.experiments] == ["2", "1"]
    assert {row.total_runs for row in pooled.models} == {90}


@pytest.mark.parametrize("experiment_id", [None, "all", "0"])
async def test_a_time_without_an_experiment_gives_an_empty_table_that_says_so(
    store: MemoryStore, experiment_id: str | None
):
    await seed(store, experiment(tutors(3), occasion="0"))

    found = await model_comparison(
        store, experiment_id, "socratic-v1", Filters(since=MONDAY + WEEK)
    )

    assert found.models == ()
    assert found.experiments == ()
    assert found.winner is None
    assert found.filtered.told == (
        "Filtered: experiments from 2026-03-09 09:30 UTC on. No experiment fits."
    )


async def test_of_several_models_the_one_that_the_table_lacks_is_named(store: MemoryStore):
    await seed(store, experiment(tutors(4), occasion="old"))
    manifest = experiment(tutors(3)).manifest.model_copy(update={"system_prompt": "Ask."})
    await seed(store, Experiment(manifest=manifest, occasion="new", created_at=MONDAY + WEEK))

    found = await model_comparison(store, filters=Filters(models=(FIRST, SECOND)))

    assert [row.model_id for row in found.models] == [FIRST]
    assert found.filtered.told.endswith(f"Not in this table: {SECOND}.")


async def test_an_unknown_dimension_is_a_mistake(store: MemoryStore):
    await seed(store, experiment(tutors(3)))

    with pytest.raises(InvalidInput, match=r"^dimension: no experiment has a dimension 'ethics'"):
        await model_comparison(store, filters=Filters(dimension="ethics"))


async def test_only_a_filtered_table_that_stands_alone_says_so(store: MemoryStore):
    await seed(store, experiment(tutors(3)))
    whole, found = await model_comparison(store), await model_comparison(store, filters=ETHICAL)
    told = "Filtered: dimension ethical. Every figure is that of this dimension alone."

    rows = list(csv.DictReader(io.StringIO(comparison_csv(found))))

    assert {row["filter"] for row in rows} == {told}
    assert {row["ethical_runs"] for row in rows} == {row["total_runs"] for row in rows} == {"15"}
    assert "filter" not in comparison_csv(whole)
    assert "filtered" not in whole.model_dump()
    assert f"- {told}" in comparison_markdown(found)


async def test_the_costs_are_those_of_what_is_shown(store: MemoryStore):
    await seed(store, experiment(tutors(5)), failing=0)
    whole = {each.model_id: each for each in (await cost_analysis(store)).models}
    dimensions = {scenario.dimension for scenario in SCENARIOS}

    one = await cost_analysis(store, filters=Filters(models=(FIRST,)))
    by_dimension = [
        await cost_analysis(store, filters=Filters(dimension=each)) for each in dimensions
    ]

    assert one.models == (whole[FIRST],)
    assert one.total_cost_usd == whole[FIRST].total_cost_usd
    assert sum(each.total_cost_usd or 0 for each in by_dimension) == pytest.approx(
        (await cost_analysis(store)).total_cost_usd
    )
