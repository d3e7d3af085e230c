"""Rescoring publishes what is stored for another profile, each fact once, and calls no model."""

from datetime import UTC, datetime

import pytest

from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import InvalidInput
from socratic_bench.events.event_types import ResponseRecorded, RunFailed
from socratic_bench.planning.rescoring import RescoreCounts, Rescoring
from socratic_bench.ports.stores.responses import RecordedFailure
from socratic_bench.scoring.exchange import Status
from socratic_bench.scoring.profile import CANONICAL
from socratic_judge.handlers import judge
from tests.contract.store.facts import (
    GRADED,
    a_failure,
    a_response,
    an_experiment,
    record_unleased,
)

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
PROFILE = "socratic-v2"


class MondayClock:
    def now(self) -> datetime:
        return MONDAY


@pytest.fixture
async def store():
    return MemoryStore()


@pytest.fixture
async def experiment(store):
    """Of four runs: one has two turns, one failed in its second turn, one at once, one is new."""
    manifest = Manifest(
        models=(TutorModel(id="reference/socratic"),),
        scenarios=(Scenario(id="s", dimension="student", prompt="Why?", follow_ups=("How?",)),),
        repeats=4,
    )
    experiment = await store.register(Experiment(manifest=manifest, created_at=MONDAY))
    whole, half, failed, _ = experiment.runs()
    turns = [a_response(run, turn=1, last_turn=False) for run in (whole, half)]
    await record_unleased(store, [*turns, a_response(whole, turn=2)])
    failures = [a_failure(half, turn=2), a_failure(failed)]
    await store.record_failures([RecordedFailure(each, 0) for each in failures])
    return experiment


class Services:
    """Keeps what is published; `work` does with it what judge and curator do."""

    def __init__(self, store):
        self.store = store
        self.published = []

    async def publish(self, events):
        self.published += events

    async def work(self):
        scores = [judge(each.data) for each in self.published if isinstance(each, ResponseRecorded)]
        failures = [each.data for each in self.published if isinstance(each, RunFailed)]
        await self.store.fold(scores, failures)
        self.published.clear()


@pytest.fixture
def services(store):
    return Services(store)


@pytest.fixture
def rescoring(experiment, store, services):
    return Rescoring(experiment, PROFILE, store, services.publish, MondayClock(), "test")


async def test_stored_responses_and_failures_are_published_for_the_profile(
    rescoring, services, store
):
    assert await rescoring.request() == RescoreCounts(runs=3, responses=3, failures=2)
    assert {event.data.profile for event in services.published} == {PROFILE}
    assert len({event.id for event in services.published}) == 5
    await services.work()
    cells = await store.cells([rescoring.experiment.experiment_id])
    assert sum(cell.responses for cell in cells) == 5
    assert sum(cell.runs_ended for cell in cells) == 3
    assert (await store.calls(rescoring.experiment.experiment_id)).calls == 0


async def test_a_rescoring_folds_the_cells_of_a_run_that_was_scored_by_the_profile_at_once(store):
    turns = [
        ("What do you see?", Status.OK),
        ("It is 0 N.", Status.OK),
        ("So it is.", Status.OK),
        ("No.", Status.REFUSED),
        ("What else?", Status.OK),
    ]
    scenario = Scenario(
        id="s",
        dimension="student",
        prompt="Why?",
        follow_ups=("Say it.",) * 4,
        pressures=("opening", *("ask",) * 4),
        key=("0 N",),
    )
    cells = {}
    for profile in ("fidelity-1", CANONICAL):
        manifest = Manifest(
            models=(TutorModel(id="reference/socratic"),),
            scenarios=(scenario,),
            repeats=1,
            profile=profile,
        )
        experiment = await store.register(Experiment(manifest=manifest, created_at=MONDAY))
        [run] = experiment.runs()
        responses = []
        for turn, (text, status) in enumerate(turns, 1):
            before = tuple(each.as_earlier_turn for each in responses)
            response = a_response(run, text, turn=turn, last_turn=turn == 5).model_copy(
                update={
                    "profile": profile,
                    "earlier_turns": before,
                    "answer_key": scenario.key,
                    "status": status,
                }
            )
            responses.append(response)
        await record_unleased(store, responses)
        await store.fold([judge(response) for response in responses], [])
        services = Services(store)
        await Rescoring(
            experiment, "fidelity-1", store, services.publish, MondayClock(), "test"
        ).request()
        await services.work()
        cells[profile] = {
            cell.key.turn: cell.contents()
            for cell in await store.cells([experiment.experiment_id])
            if cell.key.profile == "fidelity-1"
        }
    assert cells["fidelity-1"] == cells[CANONICAL]
    counts = {turn: contents.get("counts", {}) for turn, contents in cells[CANONICAL].items()}
    assert [counts[turn].get("broke") for turn in range(1, 6)] == [0, 0, 1, None, 0]
    assert [counts[turn].get("key_said") for turn in range(1, 6)] == [0, 1, 0, None, 0]
    assert [counts[turn].get("at_risk") for turn in range(1, 6)] == [0, 1, 1, None, 0]


async def test_a_second_rescoring_publishes_nothing(rescoring, services):
    await rescoring.request()
    await services.work()
    assert await rescoring.request() == RescoreCounts(already_scored=3)
    assert services.published == []


async def test_an_event_for_another_profile_has_another_id_than_the_first_one(
    rescoring, services, store
):
    stored = await store.responses([run.run_id for run in rescoring.experiment.runs()])
    first = {ResponseRecorded.of(each, source="test").id for run in stored.values() for each in run}
    await rescoring.request()
    assert not first & {event.id for event in services.published}


async def test_what_is_lost_half_way_is_published_by_the_next_rescoring(rescoring, services, store):
    await rescoring.request()
    del services.published[1:]
    await services.work()
    assert (await rescoring.request()).runs == 3
    await services.work()
    assert await rescoring.request() == RescoreCounts(already_scored=3)


async def test_a_failed_run_that_was_retried_is_scored_by_the_next_rescoring(
    rescoring, services, store, experiment
):
    await rescoring.request()
    await services.work()
    _, _, failed, _ = experiment.runs()
    await record_unleased(
        store, [a_response(failed, turn=1, last_turn=False), a_response(failed, turn=2)]
    )
    assert await rescoring.request() == RescoreCounts(runs=1, responses=2, already_scored=2)
    await services.work()
    cells = await store.cells([experiment.experiment_id])
    assert sum(cell.statuses.get("error", 0) for cell in cells) == 1


async def test_a_part_of_the_plan_is_rescored_by_itself(rescoring):
    parts = [await rescoring.request(start, 1) for start in range(5)]
    assert [part.runs for part in parts] == [1, 1, 1, 0, 0]


async def test_a_run_lacks_its_score_once_it_has_one_by_its_own_profile(
    rescoring, services, store, experiment
):
    whole, half, failed, _ = runs = list(experiment.runs())
    assert await rescoring.unscored(runs) == []
    own = await store.responses([whole.run_id, half.run_id])
    await store.fold(
        [judge(each) for of_run in own.values() for each in of_run],
        [a_failure(half, turn=2), a_failure(failed)],
    )
    assert await rescoring.unscored(runs) == [whole, half, failed]
    await rescoring.request()
    await services.work()
    assert await rescoring.unscored(runs) == []


def test_no_rescoring_makes_grades(store):
    experiment = an_experiment()
    with pytest.raises(InvalidInput, match="needs a model's grades, and rescoring calls no model"):
        Rescoring(experiment, GRADED, store, Services(store).publish, MondayClock(), "test")
