"""The table of a difference says what would tell two models apart."""

from __future__ import annotations

import io
from itertools import combinations

import pytest
from rich.console import Console

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.results.compare.model_difference import ModelDifference, model_difference
from socratic_cli.commands.compare import difference_table
from tests.contract.store.facts import a_score
from tests.dashboard.seeding import experiment, seed, tutors

MODELS = tutors(9)[2:]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def text_of(difference: ModelDifference) -> str:
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(difference_table(difference))
    return console.export_text()


async def _differences(store: MemoryStore) -> list[ModelDifference]:
    await seed(store, experiment(MODELS))
    return [
        await model_difference(store, one.id, other.id, margin=0.01)
        for one, other in combinations(MODELS, 2)
    ]


async def test_an_open_comparison_says_what_would_tell(store: MemoryStore) -> None:
    found = [each for each in await _differences(store) if not each.is_real]
    assert found

    for each in found:
        text = text_of(each)
        assert "which may be chance" in text
        assert "scenarios like these would tell a difference of this size" in text
        assert "repeats of these" in text or "no number of repeats would" in text
        assert "would show that equal models differ by less than 0.01" in text
        assert each.variance is not None
        assert f"More {each.variance.buy} would lessen the uncertainty most." in text


async def test_a_real_difference_needs_no_advice(store: MemoryStore) -> None:
    found = [each for each in await _differences(store) if each.is_real]
    assert found

    for each in found:
        text = text_of(each)
        assert "more than chance explains" in text
        assert "would tell" not in text
        assert "between scenarios (alike for both, so that pairing takes it out)" in text


async def test_equal_scores_are_no_proof_of_equality(store: MemoryStore) -> None:
    models = (TutorModel(id="m/one"), TutorModel(id="m/two"))
    planned = experiment(models)
    await store.register(planned)
    await store.fold([a_score(run) for run in planned.runs()], ())

    few = await model_difference(store, "m/one", "m/two", margin=0.02)
    many = await model_difference(store, "m/one", "m/two", margin=0.2)

    text = " ".join(text_of(few).split())
    wanted = few.equivalence.scenarios_to_show
    assert few.figures[0].interval
    assert few.p_value == 1
    assert "Both score the same over 15 scenarios. That is no proof of equality: the true" in text
    assert f"may be up to {few.figures[0].interval[1]:.2f} either way." in text
    assert f"{wanted} scenarios would show that it is less than 0.02." in text
    assert "more than chance explains" not in text
    assert "equal models" not in text
    assert "The difference is too small to matter: less than 0.2 either way" in text_of(many)


async def test_a_variance_that_rounds_to_nothing_has_no_parts(store: MemoryStore) -> None:
    found = next(each for each in await _differences(store) if each.variance)
    assert found.variance is not None
    assert "Variance of a score" in text_of(found)
    alike = found.variance.model_copy(update={"scenario": 0.0, "rest": 0.0, "repeat": 1e-6})

    text = text_of(found.model_copy(update={"variance": alike}))

    assert "Variance of a score" not in text
