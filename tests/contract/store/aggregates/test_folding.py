"""A fact is counted once, and a cell is the fold of its facts at every moment."""

from __future__ import annotations

import pytest

from socratic_bench.domain.aggregates.cell import key_of_failure, key_of_score
from socratic_bench.domain.score import ScoredResponse
from socratic_bench.ports.stores.store import Store
from socratic_bench.scoring.exchange import Status
from tests.contract.store.facts import (
    EXPERIMENT_ID,
    Facts,
    a_failure,
    a_run,
    a_score,
    an_experiment,
    an_unscored,
    contents,
    failures_in,
)

RUN = a_run()


async def _score_rows(store: Store, experiment_id: str = EXPERIMENT_ID) -> list[ScoredResponse]:
    return [scored async for page in store.score_rows(experiment_id) for scored in page]


async def test_new_facts_are_stored_and_counted(store: Store) -> None:
    facts = Facts((a_score(RUN), an_unscored(a_run(2))), (a_failure(a_run(3)),))
    folded = await store.fold(facts.scores, facts.failures)
    assert contents(folded) == facts.cells
    assert contents(await store.cells()) == facts.cells
    assert sorted(await _score_rows(store), key=lambda scored: scored.run.repeat) == [*facts.scores]
    assert await failures_in(store, EXPERIMENT_ID) == [*facts.failures]


@pytest.mark.smoke
async def test_a_fact_that_comes_again_changes_nothing_and_its_cell_is_returned(
    store: Store,
) -> None:
    facts = Facts((a_score(RUN),), (a_failure(a_run(2, scenario="scenario-1")),))
    await store.fold(facts.scores, facts.failures)
    for _ in range(2):
        assert contents(await store.fold(facts.scores, facts.failures)) == facts.cells
    assert contents(await store.cells()) == facts.cells
    assert await _score_rows(store) == [*facts.scores]
    assert await failures_in(store, EXPERIMENT_ID) == [*facts.failures]


async def test_a_fact_that_is_twice_in_a_batch_is_counted_once(store: Store) -> None:
    facts = Facts((a_score(RUN),), (a_failure(a_run(2)),))
    await store.fold(facts.scores * 3, facts.failures * 3)
    assert contents(await store.cells()) == facts.cells


async def test_the_first_score_of_a_turn_stays(store: Store) -> None:
    first, second = a_score(RUN, overall=0.25), a_score(RUN, overall=0.5)
    await store.fold([first, second], [])
    await store.fold([second], [])
    assert contents(await store.cells()) == Facts((first,)).cells
    assert await _score_rows(store) == [first]


async def test_of_failures_in_the_same_turn_the_first_stays(store: Store) -> None:
    first = a_failure(RUN)
    await store.fold([], [first, first.model_copy(update={"kind": "timeout"})])
    assert contents(await store.cells()) == Facts(failures=(first,)).cells
    assert await failures_in(store, EXPERIMENT_ID) == [first]


async def test_the_same_response_under_two_profiles_is_two_scores(store: Store) -> None:
    facts = Facts((a_score(RUN), a_score(RUN, profile="other-v1")))
    for scored in facts.scores:
        await store.fold([scored], [])
    assert contents(await store.cells()) == facts.cells
    assert len(await store.cells()) == 2


async def test_counts_of_a_profile_are_summed_once_for_each_response(store: Store) -> None:
    runs = [a_run(repeat) for repeat in range(1, 6)]
    lapses = [0, 1, 0, 0, 10**12]
    scores = [
        a_score(run, counts={"at_risk": 1, "lapsed": lapsed})
        for run, lapsed in zip(runs, lapses, strict=True)
    ]
    await store.fold(scores[:2], [])
    await store.fold(scores * 2, [a_failure(runs[0])])
    [cell] = await store.fold(scores[3:], [])
    assert cell.counts == {"at_risk": 5, "lapsed": 10**12 + 1}
    assert contents(await store.cells()) == Facts(tuple(scores)).cells
    assert sorted(await _score_rows(store), key=lambda scored: scored.run.repeat) == scores


async def test_a_failure_before_its_run_ended_with_a_response_is_taken_back(
    store: Store,
) -> None:
    facts = Facts((a_score(RUN),), (a_failure(RUN),))
    await store.fold([], facts.failures)
    assert contents(await store.fold(facts.scores, [])) == facts.cells
    assert contents(await store.cells()) == facts.cells
    assert await failures_in(store, EXPERIMENT_ID) == [*facts.failures]


async def test_a_failure_after_its_run_ended_with_a_response_is_kept_but_not_counted(
    store: Store,
) -> None:
    facts = Facts((an_unscored(RUN, Status.EMPTY),), (a_failure(RUN),))
    await store.fold(facts.scores, [])
    assert contents(await store.fold([], facts.failures)) == facts.cells
    assert contents(await store.cells()) == facts.cells
    assert await failures_in(store, EXPERIMENT_ID) == [*facts.failures]


async def test_a_failure_beside_the_response_that_ended_its_run_is_not_counted(
    store: Store,
) -> None:
    facts = Facts((a_score(RUN),), (a_failure(RUN),))
    await store.fold(facts.scores, facts.failures)
    await store.fold(facts.scores, facts.failures)
    assert contents(await store.cells()) == facts.cells


async def test_a_failure_is_taken_back_only_once(store: Store) -> None:
    facts = Facts((a_score(RUN), a_score(a_run(2))), (a_failure(RUN), a_failure(a_run(3))))
    await store.fold([], facts.failures)
    for _ in range(3):
        await store.fold(facts.scores, facts.failures)
    assert contents(await store.cells()) == facts.cells


async def test_a_response_before_the_last_turn_overrules_no_failure(store: Store) -> None:
    facts = Facts((a_score(RUN, turn=1, last_turn=False),), (a_failure(RUN, turn=2),))
    await store.fold(facts.scores, [])
    await store.fold([], facts.failures)
    await store.fold(facts.scores, [])
    assert contents(await store.cells()) == facts.cells
    assert {cell.key.turn: cell.runs_ended for cell in await store.cells()} == {1: 0, 2: 1}


async def test_a_response_under_one_profile_overrules_no_failure_under_another(
    store: Store,
) -> None:
    facts = Facts((a_score(RUN),), (a_failure(RUN, profile="other-v1"),))
    await store.fold([], facts.failures)
    await store.fold(facts.scores, [])
    assert contents(await store.cells()) == facts.cells
    assert len(await store.cells()) == 2


async def test_the_last_turn_takes_back_a_failure_in_an_earlier_turn(store: Store) -> None:
    other = a_run(2)
    failures = (a_failure(RUN, turn=1), a_failure(other, turn=2))
    await store.fold([], failures)
    first = a_score(other, turn=1, last_turn=False)
    last = (a_score(RUN, turn=3), a_score(other, turn=3))
    await store.fold([first], [])
    facts = Facts((first, *last), failures)
    folded = await store.fold(last, [])
    assert contents(await store.cells()) == facts.cells
    assert contents(folded) == facts.cells


async def test_a_cell_without_a_fact_that_counts_is_no_cell(store: Store) -> None:
    failure, last = a_failure(RUN, turn=1), a_score(RUN, turn=2)
    await store.fold([], [failure])
    folded = await store.fold([last], [])
    assert [cell.key for cell in folded] == [key_of_score(last)]
    assert [cell.key for cell in await store.cells()] == [key_of_score(last)]
    assert contents(await store.fold([], [failure])) == {}


async def test_cells_that_a_fold_did_not_touch_are_not_returned(store: Store) -> None:
    await store.fold([a_score(RUN), a_score(a_run(scenario="scenario-1"))], [])
    folded = await store.fold([a_score(a_run(2))], [])
    assert [cell.key for cell in folded] == [key_of_score(a_score(RUN))]


async def test_folding_nothing_returns_nothing(store: Store) -> None:
    assert await store.fold([], []) == []
    assert await store.cells() == []


async def test_cells_come_in_the_order_of_their_keys(store: Store) -> None:
    runs = [
        a_run(model=model, scenario=scenario)
        for model in ("reference/b", "reference/B", "reference/\u00e9", "reference/a-1")
        for scenario in ("s-10", "s-9", "\U0001f989")
    ]
    scores = [a_score(run, turn=turn, last_turn=turn == 10) for run in runs for turn in (2, 10, 1)]
    failure = a_failure(a_run(2, model="reference/z"))
    folded = await store.fold(scores, [failure])
    keys = sorted([*map(key_of_score, scores), key_of_failure(failure)])
    assert [cell.key for cell in folded] == keys
    assert [cell.key for cell in await store.cells()] == keys


async def test_cells_are_those_of_one_model_where_it_is_named(store: Store) -> None:
    models = ("reference/b", "reference/B", "reference/b-1")
    scores = [a_score(a_run(model=each)) for each in models]
    await store.fold(scores, [])
    own = Facts(tuple(scores[:1])).cells
    assert contents(await store.cells([EXPERIMENT_ID], "reference/b")) == own
    assert contents(await store.cells(None, "reference/b")) == own
    assert await store.cells([EXPERIMENT_ID], "reference/c") == []


async def test_cells_are_those_of_the_experiments_that_are_named(store: Store) -> None:
    experiments = [await store.register(an_experiment(occasion=week)) for week in ("a", "b", "c")]
    for experiment in experiments:
        await store.fold([a_score(run) for run in experiment.runs()], [])
    ids = [experiment.experiment_id for experiment in experiments]

    async def experiments_of(*asked: str) -> list[str]:
        return sorted({cell.key.experiment_id for cell in await store.cells(asked)})

    assert await experiments_of(ids[1]) == [ids[1]]
    assert await experiments_of(ids[2], ids[0], ids[2]) == sorted([ids[0], ids[2]])
    assert await experiments_of("exp-unknown") == []
    assert await experiments_of() == []
    assert len(await store.cells()) == 18


async def test_sums_are_exact_however_large(store: Store) -> None:
    large = 2**62
    scores = [
        a_score(run).model_copy(update={"cost_nanodollars": large, "latency_ms": large})
        for run in (RUN, a_run(2), a_run(3))
    ]
    for scored in scores:
        await store.fold([scored], [])
    [cell] = await store.cells()
    assert cell.cost_nanodollars.total == 3 * large
    assert cell.cost_nanodollars.squares == 3 * large * large


async def test_every_score_of_an_experiment_is_read_once_in_batches(store: Store) -> None:
    experiment = an_experiment(models=5, scenarios=10, repeats=10, follow_ups=["Why?", "How?"])
    scores = [
        a_score(run, turn=turn, last_turn=turn == 3)
        for run in experiment.runs()
        for turn in (1, 2, 3)
    ]
    await store.fold(scores, [])
    await store.fold([a_score(run) for run in an_experiment(occasion="again").runs()], [])
    pages = [page async for page in store.score_rows(experiment.experiment_id)]
    assert len(pages) > 1
    rows = [(scored.run.run_id, scored.turn) for page in pages for scored in page]
    assert sorted(rows) == sorted((scored.run.run_id, scored.turn) for scored in scores)
    assert await _score_rows(store, "exp-unknown") == []


async def test_facts_of_many_experiments_may_share_a_batch(store: Store) -> None:
    experiments = [an_experiment(occasion=f"week {week}", repeats=1) for week in range(150)]
    runs = [run for experiment in experiments for run in experiment.runs()]
    facts = Facts(
        tuple(a_score(run) for run in runs[::2]), tuple(a_failure(run) for run in runs[1::2])
    )
    await store.fold(facts.scores, facts.failures)
    assert contents(await store.cells()) == facts.cells


@pytest.mark.parametrize("turns", [(2, 3), (3, 2)])
async def test_a_run_that_failed_twice_failed_once_where_it_came_furthest(
    store: Store, turns: tuple[int, int]
) -> None:
    scores = (a_score(RUN, turn=1, last_turn=False), a_score(RUN, turn=2, last_turn=False))
    for turn in turns:
        await store.fold(scores, [a_failure(RUN, turn=turn)])
    facts = Facts(scores, tuple(a_failure(RUN, turn=turn) for turn in turns))
    assert contents(await store.cells()) == facts.cells
    assert [failure.turn for failure in await failures_in(store, EXPERIMENT_ID)] == [3]
    assert sum(cell.runs_ended for cell in await store.cells()) == 1


async def test_a_caller_that_changes_what_it_gave_or_got_changes_nothing_stored(
    store: Store,
) -> None:
    given, stored = a_score(RUN), a_score(RUN)
    folded = await store.fold([given], [])
    [row] = await _score_rows(store)
    [cell] = await store.cells()
    for scored in (given, row):
        assert scored.vectors is not None
        scored.vectors["verbosity"] = 0.0
    for each in (*folded, cell):
        each.add_failure()
    assert await _score_rows(store) == [stored]
    assert contents(await store.cells()) == Facts((stored,)).cells
