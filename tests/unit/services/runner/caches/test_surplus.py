"""A runner keeps a bounded number of experiments and clients, however fast experiments come."""

from __future__ import annotations

import asyncio

import pytest

from socratic_bench.adapters.stores.memory.experiments import MemoryExperiments
from socratic_bench.adapters.stores.memory.store import MemoryStore
from socratic_bench.domain.experiment.manifest import Experiment, TutorModel
from socratic_bench.ports.models import Reply
from socratic_bench.ports.stores.leases import ModelInHand
from socratic_runner import experiment_cache, model_pool
from socratic_runner.conversations import call_preparation
from socratic_runner.conversations.call_preparation import Budgets
from socratic_runner.experiment_cache import ExperimentCache
from socratic_runner.last_uses import MOST_CLIENTS, MOST_EXPERIMENTS, LastUses
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.model_pool import ModelPool
from tests.contract.store.facts import (
    GRADED,
    GRADER,
    a_response,
    an_experiment,
    with_grader,
)
from tests.unit.services.runner.scripted import (
    ScriptedClient,
    outcomes_of,
    parts_of_a_runner,
    reply,
    requested,
)
from tests.waiting import until, waiting_for

MOST = 4


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four experiments or clients are the most."""
    for module, name in (
        (experiment_cache, "MOST_EXPERIMENTS"),
        (call_preparation, "MOST_EXPERIMENTS"),
        (model_pool, "MOST_CLIENTS"),
    ):
        monkeypatch.setattr(module, name, MOST)


def experiments(count: int) -> list[Experiment]:
    return [an_experiment(occasion=f"week {n}", models=1) for n in range(count)]


class Clients:
    """Opens clients, and remembers all of them in order."""

    def __init__(self) -> None:
        self.opened: list[ScriptedClient] = []

    def open(self, _model: object) -> ScriptedClient:
        self.opened.append(ScriptedClient(None))
        return self.opened[-1]

    async def closed(self) -> list[bool]:
        return [client.closed for client in self.opened]


def client_of(pool: ModelPool, experiment: Experiment) -> ModelInHand:
    [model] = experiment.manifest.models
    pool.model(experiment, model.id)
    return ModelInHand(experiment.experiment_id, model.id)


def test_the_clients_of_all_remembered_experiments_have_room() -> None:
    assert MOST_CLIENTS == 25 * MOST_EXPERIMENTS


async def test_the_clients_unused_for_longest_are_closed_beyond_the_most():
    clients = Clients()
    pool = ModelPool(clients.open, ConcurrencyLimiters(most=1))
    planned = experiments(MOST + 2)
    for experiment in planned[:MOST]:
        client_of(pool, experiment)
    pool.close_idle(set)
    client_of(pool, planned[0])  # used again: the next two are the oldest now
    for experiment in planned[MOST:]:
        client_of(pool, experiment)

    pool.close_idle(set)

    expected = [False, True, True, False, False, False]
    await until(clients.closed, lambda closed: closed == expected, "the end of two clients")
    assert len(list(pool)) == MOST
    client_of(pool, planned[1])
    assert len(clients.opened) == MOST + 3  # a closed one is opened anew
    await pool.close()


async def test_models_without_a_client_leave_no_limiter():
    limiters = ConcurrencyLimiters(most=1)
    pool = ModelPool(lambda _: ScriptedClient(None), limiters)
    planned = an_experiment(models=1)
    for number in range(10 * MOST):
        model = TutorModel(id=f"openai/of-week-{number}")
        manifest = planned.manifest.model_copy(update={"models": (model,)})
        client_of(pool, Experiment(manifest=manifest, created_at=planned.created_at))
        pool.close_idle(set)
    assert len(dict(limiters)) == len(list(pool)) == MOST
    await pool.close()


async def test_clients_of_runs_in_hand_stay_open_however_many_there_are():
    clients = Clients()
    pool = ModelPool(clients.open, ConcurrencyLimiters(most=1))
    in_hand = {client_of(pool, experiment) for experiment in experiments(2 * MOST)}

    for _ in range(3):
        pool.close_idle(lambda: in_hand)
    assert len(list(pool)) == 2 * MOST

    [first, *_] = [client_of(pool, experiment) for experiment in experiments(1)]
    pool.close_idle(lambda: {first})

    await until(clients.closed, lambda closed: sum(closed) == MOST, "the end of the surplus")
    assert not clients.opened[0].closed
    await pool.close()


async def test_a_runner_keeps_the_client_of_a_slow_call_while_many_experiments_pass():
    store = MemoryStore()
    # A model of its own: until its first reply, a model gets one call at a time.
    slow = await store.register(an_experiment(occasion="a slow one"))
    others = [await store.register(each) for each in experiments(3 * MOST)]
    *_, slow_run = (run for run in slow.runs() if run.model_id == "reference/tutor-1")
    asked, answer = asyncio.Event(), asyncio.Event()
    clients: list[ScriptedClient] = []

    async def answered() -> Reply:
        asked.set()
        await answer.wait()
        return reply()

    def open_client(_model: object) -> ScriptedClient:
        first = not clients
        clients.append(ScriptedClient(lambda *_: answered() if first else reply()))
        return clients[-1]

    async def open_clients() -> int:
        return sum(not client.closed for client in clients)

    async with parts_of_a_runner(store, None) as parts, waiting_for("a slow reply"):
        parts.pool._open_client = open_client
        carrying_out = asyncio.create_task(outcomes_of(parts.handler, requested(slow_run)))
        await asked.wait()
        for experiment in others:
            await outcomes_of(parts.handler, requested(next(iter(experiment.runs()))))
        await until(open_clients, lambda count: count <= MOST + 1, "the end of the surplus")
        assert len(clients) == 1 + 3 * MOST
        assert not clients[0].closed
        answer.set()
        await carrying_out
        await parts.pool.close()


async def test_a_grader_called_for_an_answered_run_keeps_its_client():
    """Such a run is not in hand: only its grading is."""
    store = MemoryStore()
    experiment = await store.register(with_grader(an_experiment(models=1)))
    others = [await store.register(each) for each in experiments(3 * MOST)]
    run = next(iter(experiment.runs()))
    answered = a_response(run).model_copy(update={"profile": GRADED})
    await store.record([answered], [None])
    asked, answer = asyncio.Event(), asyncio.Event()

    async def graded() -> Reply:
        asked.set()
        await answer.wait()
        return reply("7")

    grader, tutor = ScriptedClient(lambda *_: graded()), ScriptedClient(lambda *_: reply())
    async with parts_of_a_runner(store, None) as parts, waiting_for("a slow grading"):
        parts.pool._open_client = lambda entry: grader if entry == GRADER.model else tutor
        grading = asyncio.create_task(outcomes_of(parts.handler, requested(run)))
        await asked.wait()
        for other in others:
            await outcomes_of(parts.handler, requested(next(iter(other.runs()))))

        async def tutor_is_closed() -> bool:
            return tutor.closed

        await until(tutor_is_closed, bool, "the end of the surplus")
        assert not grader.closed
        answer.set()
        await grading


async def test_experiments_and_budgets_beyond_the_most_are_forgotten():
    store = MemoryStore()
    known, kept = ExperimentCache(store), Budgets(store)
    planned = [await store.register(each) for each in experiments(3 * MOST)]
    first = ModelInHand(planned[0].experiment_id, "any/model")
    for experiment in planned:
        await known.named({experiment.experiment_id: set()})
        known.forget_idle(lambda: {first})
        await kept.room_may_come(experiment.experiment_id, 1)

    newest = [each.experiment_id for each in planned[1 - MOST :]]
    assert set(known._known) == {first.experiment_id, *newest}
    assert len(kept._experiments) <= MOST + 1


async def test_a_batch_has_all_its_experiments_though_others_drop_them_meanwhile():
    """One not found would be taken for an experiment that the store does not have."""

    class Forgetting(MemoryExperiments):
        async def experiment(self, experiment_id: str) -> Experiment | None:
            known.forget_idle(set)
            return await super().experiment(experiment_id)

    stored = Forgetting()
    known = ExperimentCache(stored)
    planned = [await stored.register(each) for each in experiments(3 * MOST)]
    ids = [each.experiment_id for each in planned]

    assert list(await known.named({id_: set() for id_ in ids})) == ids
    known.forget_idle(set)
    assert list(known._known) == ids[-MOST:]


async def test_only_the_surplus_is_taken_and_the_oldest_first():
    uses = LastUses[int](MOST)
    for key in (*range(2 * MOST), 0):
        uses.note(key)
    assert uses.look_is_due
    assert uses.take_idle({1}) == [2, 3, 4, 5]
    assert not uses.look_is_due
    assert uses.take_idle() == []
