"""Two profiles on the same responses: pairs in any order, and ranks that change."""

from __future__ import annotations

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment
from socratic_bench.research.agreement import profile_agreement
from tests.contract.store.facts import a_score, an_experiment, an_unscored

OWN, OTHER = "socratic-v1", "socratic-v2"


@pytest.fixture
async def experiment(store: MemoryStore) -> Experiment:
    return await store.register(an_experiment(scenarios=8, repeats=1))


async def test_only_responses_with_both_scores_are_paired(
    store: MemoryStore, experiment: Experiment
) -> None:
    both, alone, refused, *_ = experiment.runs()
    await store.fold(
        [
            a_score(both, profile=OTHER, overall=0.25),
            a_score(alone),
            a_score(refused, profile=OTHER),
            an_unscored(refused),
            a_score(both, overall=0.75),
        ],
        [],
    )
    found = await profile_agreement(store, experiment.experiment_id, OWN, OTHER)
    assert (found.responses, found.only_first, found.only_second) == (1, 1, 1)
    overall, *vectors = found.figures
    assert overall.points == ((0.75, 0.25),)
    assert [each.name for each in vectors] == ["verbosity", "exploratory", "interrogative"]


async def test_profiles_that_rank_the_models_the_other_way_round_disagree(
    store: MemoryStore, experiment: Experiment
) -> None:
    scores = []
    for place, run in enumerate(experiment.runs()):
        high, low = 0.9 - place / 100, 0.1 + place / 100
        is_first = run.model_id == "reference/tutor-0"
        scores.append(a_score(run, overall=high if is_first else low))
        scores.append(a_score(run, profile=OTHER, overall=low if is_first else high))
    await store.fold(scores, [])
    found = await profile_agreement(store, experiment.experiment_id, OWN, OTHER)
    assert [each.first_rank for each in found.models] == [1, 2]
    assert [each.second_rank for each in found.models] == [2, 1]
    assert [each.changes for each in found.models] == [True, True]
    assert found.figures[0].kappa == -1
    swapped = await profile_agreement(store, experiment.experiment_id, OTHER, OWN)
    assert swapped.figures[0].spearman == found.figures[0].spearman
    assert swapped.figures[0].difference is not None
    assert found.figures[0].difference is not None
    assert swapped.figures[0].difference.mean == pytest.approx(-found.figures[0].difference.mean)
