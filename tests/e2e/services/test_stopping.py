"""Commands stop, resume and delete an experiment under load, and raise one; another one goes on."""

import asyncio
import json
import re

import pytest

from socratic_bench.addresses import open_broker, open_store
from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.ports.stores.leases import CallCount
from socratic_bench.results.verification import verify
from tests.contract.store.facts import contents
from tests.e2e.command import Terminal
from tests.e2e.service_processes import all_ready, started
from tests.servers import postgresql, rabbitmq
from tests.servers.providers.endpoint import endpoint
from tests.waiting import until

pytestmark = pytest.mark.connected

HASTY = {"SOCRATIC_RUNNER_FIRST_DELAY": "0.01", "SOCRATIC_RUNNER_BUSY_DELAY": "0.2"}
WORKERS = ("runner", "judge", "curator")
MODEL = "reference/socratic"
MODELS = [{"id": MODEL, "options": {"latency_ms": 200}, "limits": {"concurrency": 6}}]
"""30 calls a second, over all runners."""

SCENARIOS = 15
RUNS = SCENARIOS * 6
"""Of the experiment that is to be left alone."""

MANY = SCENARIOS * 100
"""More runs than are carried out while a test lasts."""


def config(occasion: str, runs: int, *others: dict) -> str:
    """So many runs of each model."""
    models = [*MODELS, *others]
    return json.dumps({"models": models, "repeats": runs // SCENARIOS, "occasion": occasion})


OTHER = config("other", RUNS)


@pytest.fixture
async def addresses():
    async with rabbitmq.namespace() as broker, postgresql.prepared_database() as store:
        yield {"SOCRATIC_BROKER_URL": broker, "SOCRATIC_STORE_URL": store}


@pytest.fixture
async def store(addresses):
    store = open_store(addresses["SOCRATIC_STORE_URL"])
    yield store
    await store.close()


@pytest.fixture
async def broker(addresses):
    broker = open_broker(addresses["SOCRATIC_BROKER_URL"])
    await broker.declare(WORK_QUEUES, BROADCASTS)
    yield broker
    await broker.close()


@pytest.fixture
def terminal(tmp_path, addresses):
    return Terminal(tmp_path, addresses)


async def typed(terminal, *words, code=0):
    """A command's notes on standard error."""
    done = await asyncio.to_thread(terminal.run, *words)
    assert done.returncode == code, done.stderr
    return done


async def submitted(terminal, text: str) -> str:
    return (await typed(terminal, "submit", terminal.write("b.yaml", text))).stdout.strip()


async def under_way(store, experiment_id, calls=40):
    """Wait until some of its calls were begun."""
    await until(lambda: store.calls(experiment_id), lambda it: it.calls >= calls, f"{calls} calls")


async def both(terminal, mine: str) -> list[str]:
    """Submit an experiment, and the other one behind it; their ids."""
    return [await submitted(terminal, each) for each in (mine, OTHER)]


async def completed(store, experiment_id, runs=RUNS):
    await until(
        lambda: store.experiment(experiment_id), lambda it: it.completed_at, "its completion"
    )
    progress = await store.progress(experiment_id)
    assert (progress.planned, progress.done, progress.failed) == (runs, runs, 0)
    assert await verify(store, experiment_id) == []


async def dead(broker) -> list[str]:
    return [letter.reason for q in WORK_QUEUES for letter in await broker.dead_letters(q.name)]


@pytest.fixture(scope="module")
def quiet_cells(tmp_path_factory):
    """The cells of the other experiment from a run without a second experiment."""
    terminal = Terminal(tmp_path_factory.mktemp("quiet"))
    done = terminal.run("run", terminal.write("b.yaml", OTHER))
    assert done.returncode == 0, done.stderr

    async def cells():
        store = open_store(terminal.store)
        try:
            return contents(await store.cells())
        finally:
            await store.close()

    return asyncio.run(cells())


async def other_is_untouched(store, experiment_id, quiet_cells):
    await completed(store, experiment_id)
    assert contents(await store.cells([experiment_id])) == quiet_cells
    assert await store.calls(experiment_id) == CallCount(calls=RUNS, turns=RUNS)


async def settled(broker, store, experiment_id):
    """Wait until no message waits and no call is under way, and tell how many were made."""
    await until(
        lambda: broker.depth(RUNNER_RUN_REQUESTED.name, MODEL), lambda it: it == 0, "no request"
    )
    await until(lambda: store.unscored_responses(experiment_id, 1), lambda it: not it, "all scores")
    return (await store.calls(experiment_id)).calls


@pytest.mark.long
@pytest.mark.parametrize(("command", "state"), [("pause", "paused"), ("cancel", "cancelled")])
async def test_one_is_stopped_and_resumed_and_the_other_is_untouched(
    terminal, addresses, store, broker, quiet_cells, command, state
):
    environment = {**addresses, **HASTY}
    async with (
        endpoint() as model,
        all_ready(environment, *WORKERS),
        started("runner", environment) as another,
    ):
        await another.ready()
        model.hold()  # so that it cannot be done before it is stopped
        text = config("mine", RUNS, *json.loads(model.config(concurrency=4))["models"])
        mine, other = await both(terminal, text)
        await model.until_asked(1)
        await under_way(store, mine)
        told = await typed(terminal, command, mine)
        asked, calls = len(model.asked), (await store.calls(mine)).calls
        assert f"{mine} is {state}" in told.stderr
        status = json.loads((await typed(terminal, "status", mine, "--json")).stdout)
        assert status["state"] == state
        refused = await typed(terminal, "submit", terminal.write("mine.yaml", text), code=1)
        assert f"socratic-bench resume {mine}" in refused.stderr
        await model.release()
        await completed(store, other)
        done = await settled(broker, store, mine)
        # A lease that was granted and not used by then was given back.
        assert done == (await store.calls(mine)).calls <= calls
        assert len(model.asked) == asked
        assert "is resumed" in (await typed(terminal, "resume", mine)).stderr
        await completed(store, mine, 2 * RUNS)
        await other_is_untouched(store, other, quiet_cells)
        assert await store.states([mine]) == {mine: ExperimentState.OPEN}
    assert await store.calls(mine) == CallCount(calls=2 * RUNS, turns=2 * RUNS)
    assert len(model.asked) == len(set(model.asked)) == RUNS
    assert await dead(broker) == []


async def test_requests_of_a_stopped_experiment_are_settled_and_its_results_stay(
    terminal, addresses, store, broker, quiet_cells
):
    async with all_ready({**addresses, **HASTY}, *WORKERS):
        mine, other = await both(terminal, config("mine", MANY))
        await under_way(store, mine)
        await typed(terminal, "cancel", mine)
        calls = (await store.calls(mine)).calls
        watched = await typed(terminal, "watch", mine, code=1)
        assert "cancelled" in watched.stderr
        await other_is_untouched(store, other, quiet_cells)
        made = await settled(broker, store, mine)
        # A lease that was granted and not used by then was given back.
        assert made <= calls
    progress = await store.progress(mine)
    assert progress.done == made
    assert progress.failed == 0
    assert sum(cell.runs_ended for cell in await store.cells([mine])) == made
    table = await typed(terminal, "leaderboard", "--experiment", mine, "--format", "json")
    assert json.loads(table.stdout)["models"][0]["total_runs"] == made
    assert await dead(broker) == []


@pytest.mark.long
async def test_one_that_waits_behind_another_is_raised_and_passes_it(
    terminal, addresses, store, broker, quiet_cells
):
    async with all_ready({**addresses, **HASTY}, *WORKERS):
        mine, other = await both(terminal, config("mine", MANY))
        await under_way(store, mine)
        raised = terminal.write("b.yaml", OTHER)
        again = await typed(terminal, "submit", raised, "--set", "priority=high")
        assert again.stdout.strip() == other
        await other_is_untouched(store, other, quiet_cells)
        assert (await store.progress(mine)).done < MANY / 2
        status = await typed(terminal, "status", other)
        assert re.search(r"priority +high", status.stdout)
        assert "is deleted" in (await typed(terminal, "delete", mine, "--yes")).stderr
    assert await dead(broker) == []


@pytest.mark.long
async def test_one_is_deleted_and_nothing_of_it_is_left_nor_of_the_other_gone(
    terminal, addresses, store, broker, quiet_cells
):
    async with all_ready({**addresses, **HASTY}, *WORKERS) as services:
        mine, other = await both(terminal, config("mine", MANY))
        run_ids = [run.run_id for run in (await store.experiment(mine)).runs()]
        await under_way(store, mine)
        unasked = await typed(terminal, "delete", mine, code=2)
        assert "--yes" in unasked.stderr
        told = await typed(terminal, "delete", mine, "--yes")
        assert "is deleted" in told.stderr
        await other_is_untouched(store, other, quiet_cells)
        await until(
            lambda: broker.depth(RUNNER_RUN_REQUESTED.name, MODEL), lambda it: it == 0, "no request"
        )
        for service in services.values():
            service.terminate()
            assert await service.ended() == 0
    assert (await store.calls(mine)).turns == 0
    assert await store.responses(run_ids) == {}
    assert await store.cells([mine]) == []
    assert await store.failure_kinds(mine) == []
    assert await store.deletable(None) == []
    assert [each.experiment_id for each in await store.experiments()] == [other]
    again = await typed(
        terminal, "submit", terminal.write("mine.yaml", config("mine", MANY)), code=1
    )
    assert "occasion" in again.stderr
    assert "deleted" in (await typed(terminal, "status", mine, code=2)).stderr
    assert await dead(broker) == []


@pytest.mark.long
async def test_the_queue_of_a_model_goes_with_the_last_experiment_that_needs_it(
    terminal, addresses, store, broker
):
    async with endpoint() as model, all_ready({**addresses, **HASTY}, *WORKERS):
        model.hold()
        mine = await submitted(terminal, model.config(repeats=3))
        await model.until_asked(1)
        told = await typed(terminal, "delete", mine, "--yes")
        asked = len(model.asked)
        assert "No broker" not in told.stderr
        await model.release()
        await until(
            lambda: answered(model), lambda it: it == len(model.asked), "the answers in flight"
        )
        looks = [
            await rabbitmq.has_group_queue(
                addresses["SOCRATIC_BROKER_URL"], RUNNER_RUN_REQUESTED, "vllm/endpoint"
            )
            for _ in range(100)
            if await asyncio.sleep(0.06, True)  # for longer than a service takes to look once
        ]
    assert not any(looks)
    assert len(model.asked) == asked
    assert (await store.calls(mine)).turns == 0
    assert await dead(broker) == []


async def answered(model):
    return len(model.answered)


@pytest.mark.long
async def test_what_run_began_is_left_to_run_until_it_is_submitted(terminal, addresses, store):
    async with (
        endpoint() as model,
        all_ready({**addresses, **HASTY, "SOCRATIC_CURATOR_QUIET": "1"}, *WORKERS),
    ):
        model.hold()
        path = terminal.write("b.yaml", model.config(repeats=2, concurrency=4))
        running = asyncio.create_task(asyncio.to_thread(terminal.run, "run", path))
        await model.until_asked(1)
        [experiment] = await store.experiments()
        mine, runs = experiment.experiment_id, experiment.manifest.planned_runs
        assert not experiment.submitted
        assert await store.running() == []
        await typed(terminal, "pause", mine)
        await model.release()
        stopped = await running
        assert stopped.returncode == 1
        assert f"experiment {mine} is paused" in stopped.stderr
        assert len(model.asked) < runs
        assert "socratic-bench run CONFIG" in (await typed(terminal, "resume", mine)).stderr
        assert await store.running() == []
        assert await submitted(terminal, path.read_text()) == mine
        await completed(store, mine, runs)
    assert len(model.asked) == len(set(model.asked)) == runs
