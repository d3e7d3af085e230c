"""`socratic-bench submit`: a plan is handed to services that run elsewhere."""

import re

import pytest

from socratic_bench.errors import BrokerUnavailable
from socratic_bench.events import event_types
from socratic_bench.events.codec import decode
from tests.contract.store.facts import a_failure, a_score
from tests.unit.commands.conftest import BROKER

CONFIG = """
models: [reference/socratic, reference/lecturer]
repeats: 3
deadline_hours: 2
"""


@pytest.fixture
def config(prompt):
    return prompt.write(CONFIG)


def requested(broker) -> list[str]:
    """The runs requested since the last question."""
    events = [decode(message.body) for message in broker.published]
    assert {event.type for event in events} <= {event_types.RUN_REQUESTED}
    broker.published.clear()
    return [event.data.run.run_id for event in events]


def test_every_run_is_requested_and_the_id_stands_alone_on_standard_output(prompt, broker, config):
    done = prompt.run("submit", config)
    assert done.code == 0
    experiment_id = done.out.removesuffix("\n")
    assert experiment_id.startswith("exp-")
    assert len(set(requested(broker))) == 90
    assert "90 runs: 90 new" in done.err
    assert "90 of 90 runs requested." in done.err
    assert done.err.endswith(f"socratic-bench watch {experiment_id}\n")


def test_json_stands_alone_on_standard_output(prompt, broker, config):
    done = prompt.run("submit", config, "--json")
    experiment_id = prompt.run("submit", config).out.strip()
    assert done.json == {
        "experiment_id": experiment_id,
        "manifest_id": done.json["manifest_id"],
        "planned": 90,
        "already_done": 0,
        "answered": 0,
        "requested": 90,
    }
    assert done.json["manifest_id"].startswith("man-")


def test_submitted_again_only_what_is_not_done_is_requested(prompt, broker, config):
    prompt.run("submit", config)
    every = requested(broker)

    async def finish_some(store):
        [experiment] = await store.experiments()
        scored, failed, *_ = experiment.runs()
        await store.fold([a_score(scored)], [a_failure(failed)])

    prompt.seed(finish_some)
    again = prompt.run("submit", config, "--json")
    assert (again.json["already_done"], again.json["requested"]) == (2, 88)
    assert requested(broker) == every[2:]
    retried = prompt.run("submit", config, "--json", "--retry-failed")
    assert (retried.json["already_done"], retried.json["requested"]) == (1, 89)
    assert requested(broker) == every[1:]


def test_once_all_is_done_it_requests_nothing_and_points_to_the_results(prompt, broker, config):
    experiment_id = prompt.run("submit", config).out.strip()

    async def finish(store):
        [experiment] = await store.experiments()
        await store.fold([a_score(run) for run in experiment.runs()], ())

    prompt.seed(finish)
    requested(broker)
    done = prompt.run("submit", config)
    assert (done.code, done.out.strip(), requested(broker)) == (0, experiment_id, [])
    assert f"socratic-bench leaderboard --experiment {experiment_id}" in done.err


def test_the_deadline_counts_from_the_first_submission_and_can_be_put_off(prompt, broker, config):
    experiment_id = prompt.run("submit", config).out.strip()
    first = prompt.run("status", experiment_id, "--json").json
    prompt.write(CONFIG.replace("deadline_hours: 2", "deadline_hours: 0.0000001"))
    late = prompt.run("submit", config)
    assert late.out.strip() == experiment_id
    assert "raise `deadline_hours` in CONFIG to postpone it" in late.err
    status = prompt.run("status", experiment_id, "--json")
    assert (status.code, status.json["state"]) == (1, "overdue")
    assert status.json["created_at"] == first["created_at"]
    assert status.json["deadline_at"] < first["deadline_at"]


def test_a_store_named_on_the_command_line_is_part_of_what_to_type_next(prompt, broker, config):
    done = prompt.run("submit", config, "--store", f"sqlite:///{prompt.folder}/other.db")
    assert done.err.endswith("--store URL\n")
    assert "other.db is a file: this works only if all services run on this machine" in done.err


def test_what_is_in_a_recording_does_not_travel_and_it_says_so(prompt, broker):
    (prompt.folder / "r.jsonl").write_text("")
    done = prompt.run("submit", prompt.write("models: [replay/r.jsonl]\n"))
    assert done.code == 0
    assert "SOCRATIC_RUNNER_FOLDER" in done.err


def test_all_mistakes_are_told_at_once_and_nothing_is_opened(prompt, broker):
    config = prompt.write("models: [gpt-9]\nrepeat: 3\ndeadline_hours: -1\n")
    done = prompt.run("submit", config)
    assert (done.code, done.out) == (2, "")
    lines = [line.split(", ")[0] for line in done.err.splitlines()]
    assert lines == [f"Error: {config} line {number}" for number in (1, 2, 3)]
    assert broker.opened == []
    assert not (prompt.folder / "benchmark.db").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "no broker is named"),
        (("--broker", "memory://"), "memory:// is a broker within one process"),
        (("--broker", "http://x"), "must begin with amqp://"),
    ],
)
def test_without_a_broker_that_services_share_nothing_is_planned(prompt, config, words, sentence):
    done = prompt.run("submit", config, *words)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert not (prompt.folder / "benchmark.db").exists()


def test_a_broker_that_goes_away_is_one_sentence_and_the_same_command_goes_on(
    prompt, broker, config, monkeypatch
):
    async def gone(messages):
        raise BrokerUnavailable("broker.example: the broker cannot be used for now: gone")

    with monkeypatch.context() as patch:
        patch.setattr(broker, "publish", gone)
        done = prompt.run("submit", config)
    assert (done.code, done.out) == (1, "")
    assert "The same command continues from here" in done.err
    assert re.search(r"The plan is stored as (exp-\w+): .* `socratic-bench cancel \1`", done.err)
    assert done.err.endswith("Error: broker.example: the broker cannot be used for now: gone\n")
    assert prompt.run("submit", config, "--json").json["requested"] == 90


def test_no_password_is_shown(prompt, broker, config):
    assert prompt.run("submit", config).code == 0
    assert broker.opened == [BROKER]
    everything = [prompt.run("submit", config), prompt.run("dlq", "list")]
    assert "secret" not in "".join(done.out + done.err for done in everything)


def test_what_the_operator_of_the_services_has_to_list_is_said(prompt, broker):
    config = prompt.write(
        "models:\n"
        "- {id: openai/gpt}\n"
        "- {id: openai-compatible/a, base_url: 'https://llm.example/v1',"
        " options: {api_key_env: OUR_KEY}}\n"
        "- {id: openai-compatible/b, base_url: 'https://llm.example/v1',"
        " options: {api_key_env: OUR_KEY}}\n"
        "- {id: openai-compatible/c, base_url: 'https://other.example/v1', endpoint: theirs}\n"
        "- {id: bedrock/x, base_url: 'https://vpce.example'}\n"
        "- ollama/llama3\n"
    )
    done = prompt.run("submit", config)
    assert done.code == 0
    notes = [line for line in done.err.splitlines() if "SOCRATIC_ENDPOINTS=" in line]
    assert [note.partition("='")[2].rstrip("'") for note in notes] == [
        '{"NAME": {"origin": "https://llm.example", "key_variable": "OUR_KEY"}}',
        '{"theirs": {"origin": "https://other.example", "key_variable": "…"}}',
        '{"NAME": {"origin": "https://vpce.example", "aws": true}}',
        '{"NAME": {"origin": "http://127.0.0.1:11434"}}',
    ]
    assert all("OUR_KEY" not in str(message.body) for message in broker.published)
