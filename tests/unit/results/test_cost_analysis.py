"""The costs of each model, in the shape of /api/cost-analysis."""

from __future__ import annotations

from datetime import timedelta

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.errors import UnknownExperiment
from socratic_bench.results.costs import cost_analysis
from tests.contract.store.facts import a_failure, a_score, an_unscored
from tests.dashboard.seeding import MONDAY, experiment, seed, tutors

HOSTED = TutorModel(id="hosted/model")


async def test_a_cost_is_shared_out_over_runs_and_over_responses_with_a_score(store: MemoryStore):
    planned = experiment((HOSTED,))
    await store.register(planned)
    first, second, third, fourth, *_ = planned.runs()
    await store.fold([a_score(first), a_score(second), an_unscored(third)], [a_failure(fourth)])

    [model] = (await cost_analysis(store)).models

    assert (model.total_runs, model.responses, model.scored_responses) == (4, 4, 2)
    assert model.total_cost_usd == 0.000042
    assert model.cost_known == 0.5
    assert model.cost_per_run_usd == 0.000042 / 4
    assert model.cost_per_scored_response_usd == 0.000021
    assert (model.total_input_tokens, model.total_visible_output_tokens) == (160, 24)


async def test_what_is_unknown_is_none_and_stands_last(store: MemoryStore):
    planned = experiment((HOSTED, TutorModel(id="a/silent"), TutorModel(id="z/dear")))
    await store.register(planned)
    hosted, _, dear, _, _, dearer, *_ = planned.runs()
    await store.fold([a_score(hosted), a_score(dear), a_score(dearer)], ())

    analysis = await cost_analysis(store)

    assert [model.model_id for model in analysis.models] == ["z/dear", "hosted/model", "a/silent"]
    silent = analysis.models[-1]
    assert (silent.total_cost_usd, silent.cost_known, silent.cost_per_run_usd) == (None, None, None)
    assert silent.cost_per_scored_response_usd is None
    assert analysis.total_cost_usd == pytest.approx(3 * 0.000021, abs=1e-15)
    assert analysis.cost_known == 1.0


async def test_a_model_that_only_failed_has_no_cost_a_share_could_be_taken_of(store: MemoryStore):
    planned = experiment((HOSTED,))
    await store.register(planned)
    run, *_ = planned.runs()
    await store.fold((), [a_failure(run)])

    analysis = await cost_analysis(store)

    assert analysis.models[0].cost_per_scored_response_usd is None
    assert (analysis.total_cost_usd, analysis.cost_known) == (None, 0.0)


async def test_what_reference_tutors_cost_is_simulated_and_not_in_the_total(store: MemoryStore):
    planned = experiment((HOSTED, TutorModel(id="reference/priced")))
    await store.register(planned)
    await store.fold([a_score(run) for run, _ in zip(planned.runs(), range(2), strict=False)], ())

    analysis = await cost_analysis(store)

    assert {model.kind: model.total_cost_usd for model in analysis.models} == {
        "model": 0.000021,
        "reference": 0.000021,
    }
    assert analysis.total_cost_usd == 0.000021


async def test_experiments_are_chosen_as_for_the_leaderboard(store: MemoryStore):
    old = experiment(tutors(3))
    new = experiment(tutors(3), occasion="again", created_at=MONDAY + timedelta(days=7))
    await seed(store, old)
    await seed(store, new)

    newest = (await cost_analysis(store)).models
    every = (await cost_analysis(store, "all")).models
    one = (await cost_analysis(store, old.experiment_id)).models

    assert {model.experiment_ids for model in newest} == {(new.experiment_id,)}
    assert {model.experiment_ids for model in every} == {(new.experiment_id, old.experiment_id)}
    assert {model.total_runs for model in one} == {45}
    with pytest.raises(UnknownExperiment, match="exp-nowhere"):
        await cost_analysis(store, "exp-nowhere")
