"""`socratic-bench pause`, `resume`, `cancel` and `delete`: their effects, and their messages."""

import asyncio
from datetime import UTC, datetime

import pytest

from socratic_bench.consuming.queues import BROADCASTS, RUNNER_RUN_REQUESTED, WORK_QUEUES
from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.events.codec import to_message
from socratic_bench.events.event_types import RunRequested
from tests.contract.store.facts import a_score, an_experiment

JUST_NOW = datetime.now(UTC)
EXPERIMENT = an_experiment(created_at=JUST_NOW)
ID = EXPERIMENT.experiment_id
MODELS = [model.id for model in EXPERIMENT.manifest.models]


def registered(prompt, experiment=EXPERIMENT, *, scored=0, complete=False):
    """Store an experiment whose first runs came this far."""

    async def fill(store):
        await store.register(experiment)
        runs = experiment.runs()
        await store.fold([a_score(next(runs)) for _ in range(scored)], [])
        if complete:
            assert await store.complete(experiment.experiment_id, JUST_NOW)

    prompt.seed(fill)


def state_of(prompt, experiment_id=ID):
    found = {}

    async def look(store):
        found.update(await store.states([experiment_id]))

    prompt.seed(look)
    return found.get(experiment_id)


def test_an_experiment_is_paused_and_resumed_by_the_start_of_its_id(prompt):
    registered(prompt, scored=3)
    paused = prompt.run("pause", ID[:8])
    assert paused.code == 0
    assert f"{ID} is paused" in paused.err
    assert f"`socratic-bench resume {ID}`" in paused.err
    assert state_of(prompt) == ExperimentState.PAUSED
    assert prompt.run("status", ID, "--json").json["state"] == "paused"
    resumed = prompt.run("resume", ID[:8])
    assert resumed.code == 0
    assert f"socratic-bench watch {ID}" in resumed.err
    assert state_of(prompt) == ExperimentState.RESUMED
    assert prompt.run("status", ID, "--json").json["state"] == "running"


def test_what_is_stopped_names_the_next_command_in_its_status(prompt):
    registered(prompt, scored=3)
    for command, state in (("pause", "paused"), ("cancel", "cancelled")):
        prompt.run(command, ID)
        shown = prompt.run("status", ID, "--pending")
        assert shown.code == 0
        assert f"{ID} is {state}: `socratic-bench resume {ID}`" in shown.err
        [row] = [line for line in prompt.run("status").out.splitlines() if ID in line]
        assert row.split()[-1] == state


def test_results_of_a_cancelled_experiment_stay_in_the_leaderboard(prompt):
    registered(prompt, scored=3)
    assert prompt.run("cancel", ID).code == 0
    models = prompt.run("leaderboard", "--format", "json").json["models"]
    assert sum(model["total_runs"] for model in models) == 3


def test_stopping_what_is_stopped_so_already_is_no_mistake_and_cancelled_is_not_paused(prompt):
    registered(prompt)
    for _ in range(2):
        assert prompt.run("cancel", ID).code == 0
    refused = prompt.run("pause", ID)
    assert refused.code == 1
    assert f"Nothing was changed: experiment {ID} is cancelled" in refused.err
    assert state_of(prompt) == ExperimentState.CANCELLED


def test_resuming_says_who_goes_on(prompt):
    registered(prompt)
    assert "nothing was changed" in prompt.run("resume", ID).err
    embedded = an_experiment(occasion="embedded").model_copy(update={"submitted": False})
    registered(prompt, embedded)
    prompt.run("pause", embedded.experiment_id)
    resumed = prompt.run("resume", embedded.experiment_id)
    assert "`socratic-bench run CONFIG` continues it" in resumed.err
    assert state_of(prompt, embedded.experiment_id) == ExperimentState.OPEN
    complete = an_experiment(occasion="complete")
    registered(prompt, complete, scored=12, complete=True)
    assert "is complete" in prompt.run("resume", complete.experiment_id).err
    assert "is complete" in prompt.run("cancel", complete.experiment_id).err


@pytest.mark.parametrize("command", ["pause", "resume", "cancel", "delete"])
def test_what_is_not_there_is_wrong_use(prompt, command):
    registered(prompt)
    done = prompt.run(command, "exp-unknown")
    assert (done.code, "there is no experiment 'exp-unknown'" in done.err) == (2, True)


def test_an_experiment_is_deleted_with_all_it_has(prompt):
    registered(prompt, scored=3)
    done = prompt.run("delete", ID[:8], "--yes")
    assert done.code == 0
    assert f"{ID} is deleted, with" in done.err
    assert "No broker is named" in done.err
    assert prompt.run("status").err == (
        "There is no experiment in this store yet: socratic-bench submit CONFIG\n"
    )
    for command in ("status", "pause", "resume", "cancel"):
        told = prompt.run(command, ID)
        assert (told.code, f"experiment {ID} was deleted" in told.err) == (2, True)
    assert prompt.run("leaderboard", "--format", "json").json["models"] == []


def test_deleting_asks_and_without_anybody_there_needs_yes(prompt, monkeypatch):
    registered(prompt, scored=3)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    refused = prompt.run("delete", ID)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    asked = []

    def confirm(question, **_):
        asked.append(question)
        return len(asked) > 1

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.confirm", confirm)
    declined = prompt.run("delete", ID)
    assert (declined.code, declined.err) == (1, "Nothing was deleted.\n")
    assert "3 of 12 runs" in asked[0]
    assert prompt.run("delete", ID).code == 0
    assert state_of(prompt) == ExperimentState.DELETED


def test_a_deletion_that_was_cut_off_goes_on_by_the_same_command(prompt):
    registered(prompt, scored=3)

    async def cut_off(store):
        await store.change_state(ID, ExperimentState.DELETED)

    prompt.seed(cut_off)
    done = prompt.run("delete", ID, "--yes")
    assert done.code == 0
    assert f"{ID} is deleted: 12 more rows removed." in done.err  # 6 + 3 + 3
    assert "0 more rows" in prompt.run("delete", ID, "--yes").err


async def requested(broker, *experiments):
    await broker.declare(WORK_QUEUES, BROADCASTS)
    for experiment in experiments:
        await broker.publish(
            [
                to_message(RunRequested.of(run, source="test", time=JUST_NOW))
                for run in experiment.runs()
            ]
        )


@pytest.mark.parametrize(
    ("stopped", "left"), [(None, 6), (ExperimentState.CANCELLED, 0), (ExperimentState.PAUSED, 0)]
)
def test_the_queue_of_a_model_goes_unless_an_open_experiment_names_it(
    prompt, broker, stopped, left
):
    other = an_experiment(occasion="other", models=1)
    for each in (EXPERIMENT, other):
        registered(prompt, each)
    if stopped is not None:
        prompt.run("pause" if stopped is ExperimentState.PAUSED else "cancel", other.experiment_id)
    asyncio.run(requested(broker, EXPERIMENT))
    done = prompt.run("delete", ID, "--yes")
    assert done.code == 0
    assert "broker" not in done.err
    name = RUNNER_RUN_REQUESTED.name
    assert [asyncio.run(broker.depth(name, model)) for model in MODELS] == [left, 0]


@pytest.mark.parametrize("command", ["run", "submit"])
@pytest.mark.parametrize("how", ["pause", "cancel", "delete"])
def test_a_stopped_experiment_is_not_begun_anew(prompt, broker, command, how):
    path = prompt.write("models: [{id: reference/socratic}]\nrepeats: 1\n")
    begun = prompt.run("submit", path)
    experiment_id = begun.out.strip()
    prompt.run(how, experiment_id, *(["--yes"] if how == "delete" else []))
    refused = prompt.run(command, path)
    assert refused.code == 1
    wanted = "another `occasion`" if how == "delete" else f"socratic-bench resume {experiment_id}"
    assert wanted in refused.err
