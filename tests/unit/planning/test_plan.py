"""Planning streams: bounded batches, only due runs, and nothing twice."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import pytest

from socratic_bench.adapters.brokers.memory.broker import MemoryBroker
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.concurrency.retry_policy import RetryPolicy
from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.domain.experiment.manifest import Experiment, Manifest, TutorModel
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.run import Run
from socratic_bench.domain.scenario import Scenario
from socratic_bench.errors import BrokerClosed, ExperimentStopped, StoreUnavailable
from socratic_bench.events.codec import Event, to_message
from socratic_bench.events.event_types import ResponseRecorded, RunRequested
from socratic_bench.planning import plan
from socratic_bench.planning.plan import PlanCounts, StorePatience, remove_requests, resume
from socratic_bench.ports.stores.responses import RecordedFailure
from tests.contract.store.facts import a_failure, a_response, a_score, record_unleased

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


class MondayClock:
    def now(self) -> datetime:
        return MONDAY


class Ledger(MemoryStore):
    """A store that counts for how many runs at a time it is asked, and may be away or silent."""

    def __init__(self, *, failures: int = 0) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.failures = failures
        self.silent = False

    async def done_runs(
        self, experiment_id: str, run_ids: Collection[str], profile: str | None = None
    ) -> set[str]:
        self.asked.append(len(run_ids))
        return await super().done_runs(experiment_id, run_ids, profile)

    async def states(self, experiment_ids):
        if self.silent:
            await asyncio.Event().wait()
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("restarting")
        return await super().states(experiment_ids)

    async def planned_at(self) -> datetime | None:
        [running] = await self.running()
        return running.planned_at


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


async def planned(experiment, ledger, requests, runs=None, **options) -> PlanCounts:
    if not await ledger.experiments():
        await ledger.register(experiment)
    return await resume(
        experiment,
        experiment.runs() if runs is None else runs,
        ledger,
        requests.publish,
        clock=MondayClock(),
        **options,
    )


async def begun(experiment: Experiment, done: Sequence[Run] = ()) -> Ledger:
    """A store with an experiment of which these runs are done, and one answer waits for a score."""
    ledger = Ledger()
    await ledger.register(experiment)
    *_, last = experiment.runs()
    await record_unleased(ledger, [a_response(last, last_turn=False)])
    await ledger.fold([a_score(run) for run in done], [])
    return ledger


async def test_every_run_is_requested_in_batches_in_the_order_of_the_plan():
    experiment, requests = an_experiment(5), Requests()
    ledger = await begun(experiment)
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
    publish = requests.publish

    async def publish_counted(events: Sequence[Event]) -> None:
        await publish(events)
        assert made <= len(requests.events)

    monkeypatch.setattr(requests, "publish", publish_counted)
    counts = await planned(an_experiment(2500), Ledger(), requests, batch_size=100)
    assert counts.requested == made == 10_000
    assert max(requests.batches) == 100


async def test_runs_that_are_done_are_not_requested_again():
    experiment, requests = an_experiment(4), Requests()
    done = list(experiment.runs())[2:11]
    ledger = await begun(experiment, done)
    counts = await planned(experiment, ledger, requests, batch_size=4)
    assert counts == PlanCounts(planned=16, already_done=9, answered=0, requested=7)
    assert requests.batches == [2, 1, 4]
    assert not {event.subject for event in requests.events.values()} & {run.run_id for run in done}


async def test_failed_runs_are_requested_though_they_are_done_where_that_is_wanted():
    experiment, ledger, requests = an_experiment(1), Ledger(), Requests()
    await ledger.register(experiment)
    first, second, third, _ = experiment.runs()
    await ledger.fold([a_score(first)], [a_failure(second), a_failure(third)])
    await ledger.record_failures([RecordedFailure(a_failure(third), retry=4)])
    counts = await planned(experiment, ledger, requests, retry_failed=True)
    assert counts == PlanCounts(planned=4, already_done=1, answered=0, requested=3)
    retries = {event.subject: event.data.retry for event in requests.events.values()}
    assert first.run_id not in retries
    assert (retries[second.run_id], retries[third.run_id]) == (1, 5)
    groups = {event.subject: event.partitionkey for event in requests.events.values()}
    assert [groups.pop(each.run_id) for each in (second, third)] == ["retries", "retries"]
    assert list(groups.values()) == ["reference/b"]


async def test_what_is_answered_is_published_to_be_scored_and_not_requested():
    experiment, ledger, requests = an_experiment(1), Ledger(), Requests()
    await ledger.register(experiment)
    whole, halfway, *others = experiment.runs()
    answers = [a_response(whole, last_turn=False), a_response(whole, turn=2)]
    await record_unleased(ledger, [*answers, a_response(halfway, last_turn=False)])
    counts = await planned(experiment, ledger, requests)
    assert counts == PlanCounts(planned=4, already_done=0, answered=1, requested=3)
    assert [event.data for event in requests.answers] == answers
    requested = [event.subject for event in requests.events.values()]
    assert requested == [run.run_id for run in (halfway, *others)]


async def test_a_plan_is_marked_once_all_of_it_is_requested():
    experiment, ledger = an_experiment(3).model_copy(update={"submitted": True}), Ledger()
    with pytest.raises(BrokerClosed):
        await planned(experiment, ledger, Requests(room=2), batch_size=5)
    assert await ledger.planned_at() is None
    _, *others = experiment.runs()
    await planned(experiment, ledger, Requests(), runs=others)
    assert await ledger.planned_at() is None
    await planned(experiment, ledger, Requests())
    assert await ledger.planned_at() == MONDAY


async def test_only_the_runs_that_are_named_are_requested():
    experiment, requests = an_experiment(2), Requests()
    done, lost, *_ = experiment.runs()
    ledger = await begun(experiment, [done])
    counts = await planned(experiment, ledger, requests, runs=[done, lost])
    assert counts == PlanCounts(planned=2, already_done=1, answered=0, requested=1)
    assert [event.data.run for event in requests.events.values()] == [lost]


async def test_an_experiment_that_nobody_has_begun_is_planned_without_asking_for_done_runs():
    ledger, requests = Ledger(), Requests()
    experiment = an_experiment(repeats=3)
    await planned(experiment, ledger, requests)
    assert len(requests.events) == experiment.manifest.planned_runs
    assert ledger.asked == []


async def test_nothing_of_a_stopped_experiment_is_requested():
    experiment, ledger, requests = an_experiment(1), Ledger(), Requests()
    await ledger.register(experiment)
    await ledger.change_state(experiment.experiment_id, ExperimentState.PAUSED)
    with pytest.raises(ExperimentStopped, match="is paused"):
        await planned(experiment, ledger, requests)
    assert requests.batches == []


async def test_planning_again_says_the_same_and_adds_nothing():
    experiment, ledger, requests = an_experiment(3), Ledger(), Requests()
    await planned(experiment, ledger, requests)
    before = dict(requests.events)
    await planned(experiment, ledger, requests)
    assert requests.events == before


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
    patience = StorePatience(policy, pause=pause)
    counts = await planned(an_experiment(1), Ledger(failures=2), requests, patience=patience)
    assert counts.requested == 4
    assert pauses == [1.0, 2.0]


async def test_a_store_that_stays_away_ends_planning():
    async def pause(seconds: float) -> None:
        pass

    requests = Requests()
    patience = StorePatience(RetryPolicy(attempts=3), pause=pause)
    with pytest.raises(StoreUnavailable, match="restarting"):
        await planned(an_experiment(1), Ledger(failures=3), requests, patience=patience)
    assert requests.events == {}


async def test_a_store_that_never_answers_ends_planning(monkeypatch):
    monkeypatch.setattr(plan, "STORE_DEADLINE", 0.01)
    ledger = Ledger()
    ledger.silent = True
    patience = StorePatience(RetryPolicy(attempts=1))
    with pytest.raises(StoreUnavailable, match="silent"):
        await planned(an_experiment(1), ledger, Requests(), patience=patience)


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


async def test_requests_of_both_priorities_go_with_a_deleted_experiment_that_was_raised():
    ledger, broker = Ledger(), MemoryBroker()
    await broker.declare(WORK_QUEUES, BROADCASTS)
    experiment = an_experiment(1)
    raised = experiment.model_copy(
        update={"manifest": experiment.manifest.model_copy(update={"priority": "high"})}
    )
    other = Manifest(models=experiment.manifest.models[:1], scenarios=experiment.manifest.scenarios)
    for each in (experiment, raised, Experiment(manifest=other, created_at=MONDAY)):
        await ledger.register(each)
        requests = Requests()
        await planned(each, ledger, requests)
        await broker.publish(list(map(to_message, requests.events.values())))
    await ledger.change_state(experiment.experiment_id, ExperimentState.DELETED)
    await remove_requests(broker, ledger, raised)
    depths = {
        group: await broker.depth(RUNNER_RUN_REQUESTED.name, group)
        for group in raised.manifest.request_groups
    }
    # The other experiment's requests stay, with those of the deleted one beside them.
    assert depths == {
        "reference/a": 2 + other.planned_runs,
        "reference/b": 0,
        "high:reference/a": 0,
        "high:reference/b": 0,
    }
    await broker.close()
