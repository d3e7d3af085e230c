"""`socratic-bench status`: the progress of experiments, and their pending runs by name."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.domain.money import Price
from socratic_bench.domain.trouble import Trouble
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.ports.stores.leases import Lease, LeaseKey, ModelInHand
from tests.contract.store.facts import (
    a_failure,
    a_response,
    a_score,
    an_experiment,
    record_unleased,
)

LONG_AGO = datetime.now(UTC) - timedelta(hours=50)
JUST_NOW = datetime.now(UTC)


def registered(prompt, experiment, *, scored=0, failed=0, answered=0):
    """Store an experiment whose first runs came this far."""

    async def fill(store):
        await store.register(experiment)
        runs = experiment.runs()
        await store.fold(
            [a_score(next(runs)) for _ in range(scored)],
            [a_failure(next(runs)) for _ in range(failed)],
        )
        await record_unleased(store, [a_response(next(runs)) for _ in range(answered)])
        await store.complete(experiment.experiment_id, JUST_NOW)

    prompt.seed(fill)
    return experiment.experiment_id


def test_experiments_are_listed_newest_first_with_their_states(prompt):
    complete = registered(
        prompt, an_experiment(created_at=LONG_AGO - timedelta(hours=1)), scored=11, failed=1
    )
    overdue = registered(prompt, an_experiment(occasion="w1", created_at=LONG_AGO), scored=5)
    running = registered(prompt, an_experiment(occasion="w2", created_at=JUST_NOW), scored=3)
    done = prompt.run("status")
    assert done.code == 0
    _, *rows = (line.split() for line in done.out.splitlines())
    assert [(row[0], *row[-3:]) for row in rows] == [
        (running, "3", "0", "running"),
        (overdue, "5", "0", "overdue"),
        (complete, "12", "1", "complete"),
    ]
    listed = prompt.run("status", "--json").json["experiments"]
    assert [(each["experiment_id"], each["state"], each["done"]) for each in listed] == [
        (running, "running", 3),
        (overdue, "overdue", 5),
        (complete, "complete", 12),
    ]


def test_an_experiment_is_shown_with_its_name_and_its_notes(prompt):
    plain = an_experiment(created_at=JUST_NOW)
    notes = "Whether a prompt in verse changes anything.\n" * 5
    named = plain.manifest.model_copy(update={"name": "In verse", "notes": notes})
    found = registered(prompt, plain.model_copy(update={"manifest": named}))
    heading, row = prompt.run("status").out.splitlines()
    assert "name" in heading.split()
    assert "In verse" in row
    lines = [" ".join(line.split()) for line in prompt.run("status", found).out.splitlines()]
    assert "name In verse" in lines
    assert " ".join(lines).count("in verse changes anything.") == 5
    shown = prompt.run("status", found, "--json").json
    assert (shown["name"], shown["notes"]) == ("In verse", notes)


def test_a_running_experiment_shows_how_far_it_is_and_no_run_by_name(prompt):
    experiment = an_experiment(created_at=JUST_NOW)
    registered(prompt, experiment, scored=3, failed=1)
    done = prompt.run("status", experiment.experiment_id[:8])
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    for line in ("planned 12", "done 4", "failed 1", "left 8"):
        assert line in lines
    assert "reference/tutor-0 simulated cost 6 2 0 $0.000042" in lines
    assert "reference/tutor-1 simulated cost 6 2 1 ≥ $0.000021 rate_limited 1" in lines
    assert "run-" not in done.out


def test_pending_runs_are_named_before_the_deadline_when_asked_for(prompt):
    experiment = an_experiment(created_at=JUST_NOW)
    registered(prompt, experiment, scored=9, answered=2)
    done = prompt.run("status", "exp", "--pending")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines() if "run-" in line]
    assert rows == [
        [run.model_id, run.scenario_id, "2", run.run_id, waits_for]
        for run, waits_for in zip(
            list(experiment.runs())[9:], ["score", "score", "response"], strict=True
        )
    ]
    pending, idle = done.err.splitlines()
    assert pending == "3 runs are pending: 1 without a response, 2 without a score."
    assert idle.startswith("No runner has a run of it in hand now")


PRICED = TutorModel(
    id="hosted/priced",
    price=Price(input_per_million=Decimal(3), output_per_million=Decimal(15)),
)


def a_priced_experiment(*, budget=None):
    planned = an_experiment(created_at=JUST_NOW)
    models = (PRICED, TutorModel(id="hosted/unpriced"))
    manifest = planned.manifest.model_copy(update={"models": models, "budget": budget})
    return planned.model_copy(update={"manifest": manifest})


def in_flight(prompt, experiment, *, spent, reserved):
    """Call a model twice: one call is recorded, the other under way."""
    answered, asked, *_ = (run for run in experiment.runs() if run.model_id == PRICED.id)

    async def call(store):
        leases = [
            LeaseKey(run.experiment_id, run.run_id, 1, run.run_id) for run in (answered, asked)
        ]
        await store.take_leases([Lease(each, 3600.0, reserved) for each in leases], "runner")
        response = a_response(answered).model_copy(update={"cost_nanodollars": spent})
        await store.record([response], [leases[0].lease_id])

    prompt.seed(call)


def test_what_was_spent_stands_beside_the_budget_and_what_is_in_flight(prompt):
    experiment = a_priced_experiment(budget=Decimal("2.5"))
    registered(prompt, experiment)
    in_flight(prompt, experiment, spent=12_300_000, reserved=500_000_000)
    done = prompt.run("status", "exp")
    assert done.code == 0
    [line] = [line for line in done.out.splitlines() if line.startswith("cost")]
    assert " ".join(line.split()) == (
        "cost paid $0.0123, up to $0.5000 more for calls in flight; budget $2.50"
    )
    assert prompt.run("status", "exp", "--json").json["spending"] == {
        "budget_usd": 2.5,
        "paid_usd": 0.0123,
        "possibly_paid_usd": 0.0,
        "in_flight_usd": 0.5,
        "reused_usd": 0.0,
        "exhausted": False,
        "told": "paid $0.0123, up to $0.5000 more for calls in flight",
    }


def test_without_a_price_nothing_is_said_of_money(prompt):
    registered(prompt, an_experiment(created_at=JUST_NOW), answered=1)
    done = prompt.run("status", "exp")
    assert "cost" not in done.out
    assert "$" not in done.out
    assert prompt.run("status", "exp", "--json").json["spending"]["paid_usd"] is None


def test_each_model_has_its_cost_and_what_its_runs_failed_for(prompt):
    experiment = a_priced_experiment()
    registered(prompt, experiment, scored=3, failed=2)
    lines = [" ".join(line.split()) for line in prompt.run("status", "exp").out.splitlines()]
    assert "model planned done failed cost failed for" in lines
    assert "hosted/priced 6 3 1 ≥ $0.000042 rate_limited 1" in lines
    assert "hosted/unpriced 6 2 1 ≥ $0.000021 rate_limited 1" in lines


def test_each_kind_of_failure_has_the_words_of_one_run(prompt):
    experiment = a_priced_experiment()
    registered(prompt, experiment, failed=2)
    told = a_failure(next(experiment.runs())).message
    lines = prompt.run("status", "exp").out.splitlines()
    at = lines.index("failed, for example")
    assert lines[at + 1 :] == [
        f"hosted/priced: rate_limited 1: {told}",
        f"hosted/unpriced: rate_limited 1: {told}",
    ]


def in_trouble(prompt, experiment, owner="runner-1", **changes):
    """Have a live runner report that the first model fails."""
    model_id = experiment.manifest.models[0].id
    trouble = Trouble(
        experiment_id=experiment.experiment_id,
        model_id=model_id,
        kind="unreachable",
        reason="connection refused by [bold]the\x1b[31m host",
        attempt=3,
        attempts=12,
        next_in_seconds=4.0,
    ).model_copy(update=changes)
    in_hand = [ModelInHand(experiment.experiment_id, model_id)]
    prompt.seed(lambda store: store.heartbeat(owner, in_hand, [trouble]))


def test_a_model_in_trouble_is_named_with_its_reason_as_plain_text(prompt):
    experiment = a_priced_experiment()
    registered(prompt, experiment)
    in_trouble(prompt, experiment)
    in_trouble(prompt, experiment, "runner-2", attempt=2)
    lines = prompt.run("status", "exp").out.splitlines()
    assert lines[lines.index("in trouble") + 1 :] == [
        (
            "hosted/priced: connection refused by [bold]the\ufffd[31m host "
            "(attempt 3 of 12, next in 4 s)"
        )
    ]
    [told] = prompt.run("status", "exp", "--json").json["troubles"]
    assert (told["model_id"], told["kind"], told["attempt"]) == ("hosted/priced", "unreachable", 3)


def test_no_trouble_is_shown_once_its_runner_has_left_or_all_is_complete(prompt):
    experiment = a_priced_experiment()
    registered(prompt, experiment, scored=12)
    in_trouble(prompt, experiment)
    assert "in trouble" not in prompt.run("status", "exp").out
    other = an_experiment(created_at=JUST_NOW, occasion="again")
    registered(prompt, other)
    in_trouble(prompt, other)
    at_work = prompt.run("status", other.experiment_id)
    assert ("in trouble" in at_work.out, at_work.err) == (True, "")
    prompt.seed(lambda store: store.leave("runner-1"))
    assert "No runner has a run of it in hand now" in prompt.run("status", other.experiment_id).err
    assert "in trouble" not in prompt.run("status", other.experiment_id).out
    assert prompt.run("status", other.experiment_id, "--json").json["troubles"] == []


def test_out_of_budget_is_a_state_that_names_what_is_pending_and_exits_with_1(prompt):
    experiment = a_priced_experiment(budget=Decimal("0.0001"))
    registered(prompt, experiment, scored=3)
    prompt.seed(lambda store: store.exhaust(experiment.experiment_id, 10**18))
    done = prompt.run("status", "exp")
    assert done.code == 1
    assert ["state", "out", "of", "budget"] in [line.split() for line in done.out.splitlines()]
    assert len([line for line in done.out.splitlines() if "run-" in line]) == 9
    assert "9 runs are pending: 9 without a response." in done.err
    assert "Raise `budget` in CONFIG" in done.err
    [listed] = prompt.run("status", "--json").json["experiments"]
    assert listed["state"] == "out_of_budget"


def test_a_budget_that_was_raised_is_running_again(prompt):
    experiment = a_priced_experiment(budget=Decimal("0.0001"))
    registered(prompt, experiment, scored=3)
    prompt.seed(lambda store: store.exhaust(experiment.experiment_id, 10**18))
    prompt.seed(lambda store: store.register(a_priced_experiment(budget=Decimal(1))))
    done = prompt.run("status", "exp", "--json")
    assert (done.code, done.json["state"], done.json["spending"]["budget_usd"]) == (
        0,
        "running",
        1.0,
    )


def test_past_its_deadline_every_pending_run_is_named_and_the_exit_code_is_1(prompt):
    experiment = an_experiment(created_at=LONG_AGO, repeats=12)
    registered(prompt, experiment, scored=10, failed=2, answered=3)
    pending = [run.run_id for run in experiment.runs()][12:]
    done = prompt.run("status", experiment.experiment_id)
    assert done.code == 1
    named = [line for line in done.out.splitlines() if "run-" in line]
    assert [line.split()[3] for line in named] == pending[:20]
    assert done.out.endswith("… and 40 more: --pending\n")
    asked_for = prompt.run("status", experiment.experiment_id, "--pending").out
    named = [line for line in asked_for.splitlines() if "run-" in line]
    assert [line.split()[3] for line in named] == pending[:50]
    assert asked_for.endswith("… and 10 more\n")
    assert "60 runs are pending: 57 without a response, 3 without a score." in done.err
    assert "The deadline has passed." in done.err
    as_json = prompt.run("status", experiment.experiment_id, "--json")
    assert (as_json.code, as_json.json["state"], as_json.json["left"]) == (1, "overdue", 60)
    assert [run["run_id"] for run in as_json.json["pending"]] == pending
    assert [run["waits_for"] for run in as_json.json["pending"]] == ["score"] * 3 + [
        "response"
    ] * 57


def test_a_turn_in_the_middle_of_a_run_is_named(prompt):
    experiment = an_experiment(created_at=JUST_NOW, follow_ups=("And?", "Why?"))

    async def fill(store):
        await store.register(experiment)
        await record_unleased(store, [a_response(next(experiment.runs()), last_turn=False)])

    prompt.seed(fill)
    first, *others = [
        line for line in prompt.run("status", "exp", "--pending").out.splitlines() if "run-" in line
    ]
    assert first.split()[-4:] == ["response", "2", "of", "3"]
    assert others[0].split()[-4:] == ["response", "1", "of", "3"]


@pytest.mark.parametrize("created_at", [LONG_AGO, JUST_NOW])
def test_a_complete_experiment_is_no_matter_of_its_deadline(prompt, created_at):
    registered(prompt, an_experiment(created_at=created_at), scored=12)
    done = prompt.run("status", "exp", "--json", "--pending")
    assert done.code == 0
    assert (done.json["state"], done.json["left"], done.json["pending"]) == ("complete", 0, [])


def test_json_leaves_pending_runs_out_where_they_were_not_looked_for(prompt):
    registered(prompt, an_experiment(created_at=JUST_NOW), scored=1)
    assert prompt.run("status", "exp", "--json").json["pending"] is None


def test_one_without_a_score_that_was_lost_is_not_complete(prompt):
    experiment = an_experiment(created_at=LONG_AGO, follow_ups=("And?",))

    async def fill(store):
        await store.register(experiment)
        first, *_ = experiment.runs()
        await record_unleased(
            store, [a_response(first, last_turn=False), a_response(first, turn=2)]
        )
        await store.fold([a_score(run, turn=2) for run in experiment.runs()], ())

    prompt.seed(fill)
    done = prompt.run("status", "exp", "--pending", "--json")
    assert (done.code, done.json["state"]) == (1, "overdue")
    assert [run["waits_for"] for run in done.json["pending"]] == ["score"]


@pytest.mark.parametrize("command", ["status", "watch"])
def test_an_unknown_experiment_is_one_sentence_and_exit_code_2(prompt, command):
    registered(prompt, an_experiment())
    done = prompt.run(command, "exp-nowhere")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: there is no experiment 'exp-nowhere' in this store: write ")


@pytest.mark.parametrize(
    "words",
    [["status"], ["watch"], ["pause"], ["delete", "--yes"], ["leaderboard", "--experiment"]],
)
def test_a_text_that_could_mean_several_experiments_lists_them_with_exit_code_2(prompt, words):
    weeks = [an_experiment(occasion=f"week {week}") for week in range(2)]
    for week in weeks:
        registered(prompt, week)
    done = prompt.run(*words, "exp-")
    assert (done.code, done.out) == (2, "")
    assert "'exp-' could be 2 experiments: exp-" in done.err
    assert all(week.experiment_id in done.err for week in weeks)


def test_the_leaderboard_finds_an_experiment_by_its_occasion(prompt):
    weeks = [an_experiment(occasion=f"week {week}") for week in range(2)]
    for week in weeks:
        registered(prompt, week)
    done = prompt.run("leaderboard", "--experiment", "week 1", "--format", "json")
    assert [each["occasion"] for each in done.json["experiments"]] == ["week 1"]


def test_without_a_store_nothing_is_made(prompt):
    assert prompt.run("status").code == 2
    assert not (prompt.folder / "benchmark.db").exists()


def test_pending_runs_of_all_experiments_are_not_asked_for(prompt):
    registered(prompt, an_experiment())
    done = prompt.run("status", "--pending")
    assert done.code == 2
    assert "ID" in done.err


def test_dead_letters_are_told_of_where_a_broker_is_named(prompt, broker):
    experiment = an_experiment(created_at=JUST_NOW)
    registered(prompt, experiment)
    assert prompt.run("status").err == ""
    asyncio.run(broker.bury("judge-response-recorded", "no event", b"{}", b"[]"))
    for words in (["status"], ["status", experiment.experiment_id, "--json"]):
        told = prompt.run(*words).err
        assert told.startswith("There are dead letters: 2 in judge-response-recorded. ")
        assert "socratic-bench dlq list" in told


def test_a_broker_that_does_not_answer_keeps_nobody_from_the_status(prompt, broker, monkeypatch):
    async def away(queues):
        raise BrokerUnavailable("connection refused")

    monkeypatch.setattr(broker, "inspect", away)
    registered(prompt, an_experiment(created_at=JUST_NOW))
    done = prompt.run("status")
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    assert done.err == "Dead letters are unknown: connection refused.\n"
