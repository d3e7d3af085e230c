"""Planning streams: bounded batches, only due runs, and nothing twice."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import pytest

from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.response import Response
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import BrokerClosed, StoreUnavailable
from socratic_bench.events.codec import Event
from socratic_bench.events.response_recorded import ResponseRecorded
from socratic_bench.events.run_requested import RunRequested
from socratic_bench.planning import plan
from socratic_bench.planning.plan import PlanCounts, publish_plan
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.leases import CallCount
from socratic_bench.ports.stores.responses import RecordedFailure
from tests.contract.store.facts import a_failure, a_response

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


class MondayClock:
    def now(self) -> datetime:
        return MONDAY


class Ledger:
    """The part of a store that planning asks: experiments, and which of their runs are done."""

    def __init__(self, *, failures: int = 0) -> None:
        self.experiments: dict[str, Experiment] = {}
        self.done: set[str] = set()
        self.asked: list[int] = []
        self.failures = failures
        self.silent = False
        self.begun = True
        self.failed: dict[str, RecordedFailure | None] = {}
        self.stored: dict[str, Sequence[Response]] = {}
        self.planned: list[datetime] = []

    async def register(self, experiment: Experiment) -> Experiment:
        return self.experiments.setdefault(experiment.experiment_id, experiment)

    async def calls(self, experiment_id: str) -> CallCount:
        assert experiment_id in self.experiments
        return CallCount(calls=7, turns=7) if self.begun else CallCount(calls=0, turns=0)

    async def progress(self, experiment_id: str) -> Progress:
        planned = self.experiments[experiment_id].manifest.planned_runs
        return Progress(planned=planned, done=len(self.done), failed=0)

    async def responses(self, run_ids: Collection[str]) -> dict[str, Sequence[Response]]:
        return {run_id: self.stored[run_id] for run_id in run_ids if run_id in self.stored}

    async def unscored_responses(self, experiment_id: str, limit: int) -> Sequence[Response]:
        return [each for stored in self.stored.values() for each in stored][:limit]

    async def recorded_failures(self, run_ids: Collection[str]) -> dict[str, RecordedFailure]:
        return {run_id: known for run_id in run_ids if (known := self.failed.get(run_id))}

    async def failed_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        assert experiment_id in self.experiments
        return self.failed.keys() & set(run_ids)

    async def mark_planned(self, experiment_id: str, at: datetime) -> None:
        assert experiment_id in self.experiments
        self.planned.append(at)

    async def done_runs(self, experiment_id: str, run_ids: Collection[str]) -> set[str]:
        assert experiment_id in self.experiments
        if self.silent:
            await asyncio.Event().wait()
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("restarting")
        self.asked.append(len(run_ids))
        return self.done & set(run_ids)


class Requests:
    """Takes published events; only its id tells a second copy of an event apart."""

    def __init__(self, *, room: int | None = None) -> None:
        self.events: dict[str, RunRequested] = {}
        self.answers: list[ResponseRecorded] = []
        self.batches: list[int] = []
        self.room = room

    async def publish(self, events: Sequence[Event]) -> None:
        if self.room is not None and len(self.batches) >= self.room:
            raise BrokerClosed("gone")
        self.batches.append(len(events))
        for event in events:
            if isinstance(event, ResponseRecorded):
                self.answers.append(event)
            else:
                assert isinstance(event, RunRequested)
                self.events[event.id] = event


def an_experiment(repeats: int) -> Experiment:
    """Four runs per repeat: two models, two scenarios."""
    manifest = Manifest(
        models=(TutorModel(id="reference/a"), TutorModel(id="reference/b")),
        scenarios=tuple(Scenario(id=name, dimension="student", prompt="Why?") for name in "xy"),
        repeats=repeats,
    )
    return Experiment(manifest=manifest, occasion="2026-W10", created_at=MONDAY)


async def planned(experiment, ledger, requests, **options) -> PlanCounts:
    return await publish_plan(experiment, ledger, requests.publish, clock=MondayClock(), **options)


async def test_every_run_is_requested_in_batches_in_the_order_of_the_plan():
    experiment, ledger, requests = an_experiment(5), Ledger(), Requests()
    counts = await planned(experiment, ledger, requests, batch_size=8, source="test")
    assert counts == PlanCounts(planned=20, already_done=0, answered=0, requested=20)
    assert requests.batches == ledger.asked == [8, 8, 4]
    assert [event.data.run for event in requests.events.values()] == list(experiment.runs())
    assert {(event.source, event.time) for event in requests.events.values()} == {("test", MONDAY)}


async def test_no_run_is_made_before_the_batch_before_it_is_published(monkeypatch):
    made = 0
    runs = Experiment.runs

    def counted(self):
        nonlocal made
        for run in runs(self):
            made += 1
            yield run

    monkeypatch.setattr(Experiment, "runs", counted)
    requests = Requests()

    async def publish(events: Sequence[Event]) -> None:
        await requests.publish(events)
        assert made <= len(requests.events)

    counts = await publish_plan(
        an_experiment(2500), Ledger(), publish, clock=MondayClock(), batch_size=100
    )
    assert counts.requested == made == 10_000
    assert max(requests.batches) == 100


async def test_runs_that_are_done_are_not_requested_again():
    experiment, ledger, requests = an_experiment(4), Ledger(), Requests()
    done = [run.run_id for run in experiment.runs()][2:11]
    ledger.done.update(done)
    counts = await planned(experiment, ledger, requests, batch_size=4)
    assert counts == PlanCounts(planned=16, already_done=9, answered=0, requested=7)
    assert requests.batches == [2, 1, 4]
    assert not {event.subject for event in requests.events.values()} & ledger.done


async def test_failed_runs_are_requested_though_they_are_done_where_that_is_wanted():
    experiment, ledger, requests = an_experiment(1), Ledger(), Requests()
    first, second, third, _ = experiment.runs()
    ledger.done.update({first.run_id, second.run_id})
    ledger.failed = {
        second.run_id: None,
        third.run_id: RecordedFailure(a_failure(third), retry=4),
    }
    counts = await planned(experiment, ledger, requests, retry_failed=True)
    assert counts == PlanCounts(planned=4, already_done=1, answered=0, requested=3)
    retries = {event.subject: event.data.retry for event in requests.events.values()}
    assert first.run_id not in retries
    assert (retries[second.run_id], retries[third.run_id]) == (1, 5)


@pytest.mark.parametrize("begun", [True, False])
async def test_what_is_answered_is_published_to_be_scored_and_not_requested(begun):
    experiment, ledger, requests = an_experiment(1), Ledger(), Requests()
    ledger.begun = begun
    whole, halfway, *others = experiment.runs()
    ledger.stored[whole.run_id] = [a_response(whole, last_turn=False), a_response(whole, turn=2)]
    ledger.stored[halfway.run_id] = [a_response(halfway, last_turn=False)]
    counts = await planned(experiment, ledger, requests)
    assert counts == PlanCounts(planned=4, already_done=0, answered=1, requested=3)
    assert [event.data for event in requests.answers] == ledger.stored[whole.run_id]
    requested = [event.subject for event in requests.events.values()]
    assert requested == [run.run_id for run in (halfway, *others)]


async def test_a_plan_is_marked_once_all_of_it_is_requested():
    experiment, ledger = an_experiment(3), Ledger()
    with pytest.raises(BrokerClosed):
        await planned(experiment, ledger, Requests(room=2), batch_size=5)
    assert ledger.planned == []
    await planned(experiment, ledger, Requests())
    assert ledger.planned == [MONDAY]


async def test_an_experiment_that_nobody_has_begun_is_planned_without_asking_for_done_runs():
    ledger, requests = Ledger(), Requests()
    ledger.begun = False
    experiment = an_experiment(repeats=3)
    await publish_plan(experiment, ledger, requests.publish, clock=MondayClock())
    assert len(requests.events) == experiment.manifest.planned_runs
    assert ledger.asked == []


async def test_planning_again_says_the_same_and_adds_nothing():
    experiment, ledger, requests = an_experiment(3), Ledger(), Requests()
    await planned(experiment, ledger, requests)
    before = dict(requests.events)
    later = experiment.model_copy(update={"created_at": datetime(2027, 1, 1, tzinfo=UTC)})
    await planned(later, ledger, requests)
    assert requests.events == before
    assert list(ledger.experiments.values()) == [experiment]


async def test_planning_that_was_cut_off_is_repeated_from_the_start():
    experiment, ledger = an_experiment(3), Ledger()
    cut_off = Requests(room=2)
    with pytest.raises(BrokerClosed):
        await planned(experiment, ledger, cut_off, batch_size=4)
    assert len(cut_off.events) == 8
    cut_off.room = None
    await planned(experiment, ledger, cut_off, batch_size=4)
    assert [event.data.run for event in cut_off.events.values()] == list(experiment.runs())


async def test_a_store_that_comes_back_is_asked_again_after_a_pause():
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    policy = RetryPolicy(attempts=3, first_delay=1.0, draw=lambda: 1.0)
    requests = Requests()
    options = {"retry_policy": policy, "pause": pause}
    counts = await planned(an_experiment(1), Ledger(failures=2), requests, **options)
    assert counts.requested == 4
    assert pauses == [1.0, 2.0]


async def test_a_store_that_stays_away_ends_planning():
    async def pause(seconds: float) -> None:
        pass

    requests = Requests()
    policy = RetryPolicy(attempts=3)
    with pytest.raises(StoreUnavailable, match="restarting"):
        await planned(
            an_experiment(1), Ledger(failures=3), requests, retry_policy=policy, pause=pause
        )
    assert requests.events == {}


async def test_a_store_that_never_answers_ends_planning(monkeypatch):
    monkeypatch.setattr(plan, "STORE_DEADLINE", 0.01)
    ledger = Ledger()
    ledger.silent = True
    with pytest.raises(StoreUnavailable, match="silent"):
        await planned(an_experiment(1), ledger, Requests(), retry_policy=RetryPolicy(attempts=1))


async def test_a_batch_holds_at_least_one_run():
    with pytest.raises(ValueError, match="batch_size must be 1 or more, not 0"):
        await planned(an_experiment(1), Ledger(), Requests(), batch_size=0)


async def test_the_first_batches_are_small_and_others_have_a_turn_in_between():
    requests, turns = Requests(), []

    async def run_beside() -> None:
        while True:
            turns.append(len(requests.batches))
            await asyncio.sleep(0)

    running = asyncio.create_task(run_beside())
    await planned(an_experiment(1000), Ledger(), requests)
    running.cancel()
    assert requests.batches == [200, 400, 800, 1600, 1000]
    assert set(turns) >= {1, 2, 3, 4}
