"""`socratic-bench watch`: follows an experiment to its end, its deadline or its last dollar."""

import asyncio
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from socratic_bench.consuming.queues import BROADCASTS
from socratic_bench.domain.aggregates.cell import fold
from socratic_bench.domain.money import Price
from socratic_bench.errors import BrokerUnavailable, StoreUnavailable
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import AggregateUpdated, AggregateUpdatedData
from socratic_bench.ports.stores.experiments import Progress
from socratic_bench.ports.stores.leases import Spending
from socratic_cli.commands import watch as watching
from socratic_cli.commands.watch import follow
from tests.contract.store.facts import MINUTE, MONDAY, a_score, an_experiment
from tests.unit.commands.conftest import KeptBroker
from tests.waiting import waiting_for

EXPERIMENT = an_experiment()
COMPLETE = EXPERIMENT.model_copy(update={"completed_at": MONDAY})
DEADLINE = EXPERIMENT.deadline_at
NOW = datetime.now(UTC)


PRICE = Price(input_per_million=Decimal(3), output_per_million=Decimal(15))
FREE = Price(input_per_million=Decimal(0), output_per_million=Decimal(0))
ENOUGH = Spending(budget=None, committed=0, in_flight=0, exhausted=False)
EXHAUSTED = Spending(budget=9, committed=8, in_flight=0, exhausted=True)


def with_prices(experiment, *prices, budget=None):
    models = tuple(
        model.model_copy(update={"price": price})
        for model, price in zip(experiment.manifest.models, prices, strict=True)
    )
    manifest = experiment.manifest.model_copy(update={"models": models, "budget": budget})
    return experiment.model_copy(update={"manifest": manifest})


class ScriptedStore:
    """Answers by its scripts; the last answers stay."""

    def __init__(self, *progress, stored=COMPLETE, spending=(ENOUGH,), cells=()):
        self.script = list(progress)
        self.stored = stored
        self.spent = list(spending)
        self.scored = cells
        self.looks = 0

    async def spending(self, experiment_id):
        return self.spent.pop(0) if len(self.spent) > 1 else self.spent[0]

    async def cells(self, experiment_ids):
        return self.scored

    async def failure_kinds(self, experiment_id):
        return []

    async def progress(self, experiment_id):
        self.looks += 1
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        return Progress(planned=12, done=answer, failed=0)

    async def experiment(self, experiment_id):
        return self.stored


class StoppedClock:
    def __init__(self, *times):
        self.times = list(times)

    def now(self):
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(watching, "SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr(watching, "LONGEST_PAUSE", 0.01)


async def followed(store, clock, heard=None, experiment=EXPERIMENT):
    seen = []

    async def on_progress(progress):
        seen.append(progress.done)

    ended = await follow(
        experiment, store, clock, heard=heard or asyncio.Event(), on_progress=on_progress
    )
    return *ended, seen


async def test_it_looks_again_and_again_until_all_is_done_without_hearing_anything():
    store = ScriptedStore(0, 5, 5, 12)
    assert await followed(store, StoppedClock(MONDAY)) == (COMPLETE, True, [0, 5, 5, 12])


async def test_all_runs_done_is_not_complete_before_the_store_says_so():
    store = ScriptedStore(12, stored=EXPERIMENT)
    assert await followed(store, StoppedClock(DEADLINE)) == (EXPERIMENT, False, [12])


async def test_it_ends_at_the_deadline_with_what_was_done_until_then():
    store = ScriptedStore(5, stored=EXPERIMENT)
    clock = StoppedClock(DEADLINE - MINUTE, DEADLINE)
    assert await followed(store, clock) == (EXPERIMENT, False, [5, 5])


async def test_a_deadline_that_was_put_off_meanwhile_is_waited_for():
    manifest = EXPERIMENT.manifest.model_copy(update={"deadline_hours": 25.0})
    put_off = COMPLETE.model_copy(update={"manifest": manifest})
    store = ScriptedStore(5, 5, 12, stored=put_off)
    experiment, complete, _ = await followed(store, StoppedClock(DEADLINE))
    assert complete
    assert experiment.deadline_at == DEADLINE + timedelta(hours=1)


async def test_all_done_at_the_deadline_is_complete():
    assert (await followed(ScriptedStore(12), StoppedClock(DEADLINE)))[1]


async def test_an_exhausted_budget_ends_it_once_no_call_can_give_money_back():
    calling = replace(EXHAUSTED, in_flight=3)
    priced = with_prices(EXPERIMENT, PRICE, PRICE)
    store = ScriptedStore(5, stored=priced, spending=(ENOUGH, calling, EXHAUSTED))
    assert await followed(store, StoppedClock(MONDAY), experiment=priced) == (
        priced,
        False,
        [5, 5, 5],
    )


async def test_models_that_cost_nothing_are_waited_for_without_a_budget():
    stored = with_prices(EXPERIMENT, FREE, PRICE)
    free, *_ = stored.runs()
    done = fold([a_score(run) for run in stored.runs() if run.model_id == free.model_id], ())

    class Working(ScriptedStore):
        async def cells(self, experiment_ids):
            return list(done.values()) if self.looks > 2 else []

    store = Working(0, 5, 6, stored=stored, spending=(EXHAUSTED,))
    _, complete, seen = await followed(store, StoppedClock(MONDAY), experiment=stored)
    assert (complete, seen) == (False, [0, 5, 6])


async def test_all_done_is_complete_however_little_money_is_left():
    store = ScriptedStore(12, spending=(EXHAUSTED,))
    assert (await followed(store, StoppedClock(MONDAY)))[1]


async def test_a_store_that_is_away_is_waited_for_and_said_once(capsys):
    away = StoreUnavailable("the database is away")
    store = ScriptedStore(away, away, 12)
    assert (await followed(store, StoppedClock(MONDAY)))[1]
    assert capsys.readouterr().err == "Waiting for the store: the database is away\n"


async def test_what_is_heard_ends_the_pause(monkeypatch):
    monkeypatch.setattr(watching, "LONGEST_PAUSE", 3600.0)
    heard = asyncio.Event()
    heard.set()
    async with waiting_for("the end of the pause"):
        assert (await followed(ScriptedStore(5, 12), StoppedClock(MONDAY), heard))[1]
    assert not heard.is_set()


def announcement(experiment_id):
    data = AggregateUpdatedData(
        experiment_id=experiment_id, planned=12, done=1, failed=0, models=("a/b",)
    )
    return to_message(AggregateUpdated.of(data, source="test", time=MONDAY))


async def test_only_announcements_of_this_experiment_are_heard():
    broker, heard = KeptBroker(), asyncio.Event()
    await broker.declare((), BROADCASTS)
    listening = asyncio.create_task(watching._listen(broker, EXPERIMENT.experiment_id, heard))
    try:
        await broker.publish([announcement("exp-other")])
        for _ in range(20):
            await asyncio.sleep(0)
        await broker.publish([announcement("exp-other")])
        for _ in range(20):
            await asyncio.sleep(0)
        assert not heard.is_set()
        await broker.publish([announcement(EXPERIMENT.experiment_id)])
        async with waiting_for("the announcement"):
            await heard.wait()
    finally:
        listening.cancel()
        await asyncio.wait([listening])


def registered(prompt, experiment, *, scored):
    async def fill(store):
        await store.register(experiment)
        runs = list(experiment.runs())[:scored]
        await store.fold([a_score(run) for run in runs], ())
        await store.complete(experiment.experiment_id, NOW)

    prompt.seed(fill)


def test_a_complete_experiment_shows_its_leaderboard(prompt):
    registered(prompt, an_experiment(created_at=NOW), scored=12)
    done = prompt.run("watch", "exp-")
    assert done.code == 0
    row = done.out.splitlines()[1].split()
    assert "6/6" in row
    assert row[-1] == "$0.00013"
    assert "12 runs done, none failed. Results:" in done.err
    as_json = prompt.run("watch", "exp-", "--json").json
    assert (as_json["state"], as_json["done"]) == ("complete", 12)
    assert [model["total_runs"] for model in as_json["leaderboard"]["models"]] == [6, 6]


def test_past_the_deadline_it_names_what_is_pending_and_exits_with_1(prompt):
    experiment = an_experiment(created_at=NOW - timedelta(hours=25))
    registered(prompt, experiment, scored=10)
    pending = [run.run_id for run in experiment.runs()][10:]
    done = prompt.run("watch", "exp-")
    assert done.code == 1
    assert [line.split()[3] for line in done.out.splitlines() if "run-" in line] == pending
    as_json = prompt.run("watch", "exp-", "--json")
    assert as_json.code == 1
    assert [run["run_id"] for run in as_json.json["pending"]] == pending


def test_out_of_budget_it_names_what_is_pending_says_what_to_do_and_exits_with_1(prompt):
    experiment = with_prices(an_experiment(created_at=NOW), PRICE, PRICE, budget=Decimal("0.00025"))
    registered(prompt, experiment, scored=10)
    prompt.seed(lambda store: store.exhaust(experiment.experiment_id, 10**18))
    pending = [run.run_id for run in experiment.runs()][10:]
    done = prompt.run("watch", "exp-")
    assert done.code == 1
    assert [line.split()[3] for line in done.out.splitlines() if "run-" in line] == pending
    assert "out of budget" in done.out
    assert "Raise `budget` in CONFIG" in done.err
    as_json = prompt.run("watch", "exp-", "--json")
    assert (as_json.code, as_json.json["state"]) == (1, "out_of_budget")


def test_a_broker_that_cannot_be_heard_is_no_reason_to_stop(prompt, broker, monkeypatch):
    async def away(*_):
        raise BrokerUnavailable("broker.example: away")

    monkeypatch.setattr(broker, "declare", away)
    monkeypatch.setattr(watching, "follow", _after(watching.follow, lambda: asyncio.sleep(0.01)))
    registered(prompt, an_experiment(created_at=NOW), scored=12)
    done = prompt.run("watch", "exp-")
    assert done.code == 0
    assert "Querying the store every second, since the broker sends no announcements" in done.err


def _after(function, wait):
    async def waited(*arguments, **named):
        await wait()
        return await function(*arguments, **named)

    return waited


def test_ctrl_c_ends_the_watching_only(prompt, monkeypatch):
    async def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    monkeypatch.setattr(watching, "follow", interrupted)
    registered(prompt, an_experiment(created_at=NOW), scored=1)
    done = prompt.run("watch", "exp-")
    assert (done.code, done.out) == (130, "")
    assert done.err.endswith("Stopped watching: the experiment goes on.\n")
