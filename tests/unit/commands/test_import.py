"""`socratic-bench import`: answers of another tool in the store, scored, and marked as imported."""

import json
from statistics import fmean

import pytest

from socratic_bench import score
from tests.unit.commands.test_logs import (
    ASKS,
    EVALUATION,
    STUDENT,
    TELLS,
    event,
    inspect,
    jsonl,
    said,
    sample,
)

USAGE = {"input_tokens": 20, "output_tokens": 9, "total_tokens": 29}
ID = "imported/inspect/openai/m"


def asked(name, text, epoch=1, **more):
    messages = [said("u", "user", f"{STUDENT} ({name})"), said("a", "assistant", text)]
    return {**sample(name, *messages, events=[event("a", usage=USAGE)], **more), "epoch": epoch}


@pytest.fixture
def log(prompt):
    """Write a log of two samples and two epochs: one failed, one refused, one missing."""
    header = {**EVALUATION, "config": {"epochs": 3}}
    refused = asked("q2", "")
    refused["messages"][1]["content"] = [{"type": "text", "refusal": True, "text": "No."}]
    given = inspect(
        asked("q1", ASKS),
        asked("q1", TELLS, 2),
        asked("q1", "Error 400", 3, error={"message": "Bearer abcdef123456 is refused"}),
        refused,
        asked("q2", ASKS, 2),
        eval=header,
    )
    prompt.write(json.dumps(given), "log.json")
    return given


def test_the_means_of_an_imported_log_are_those_by_hand(prompt, log):
    done = prompt.run("import", "log.json", "--json")
    assert (done.code, done.json["runs"], done.json["planned"]) == (0, 5, 6)
    assert done.json["unscored"] == {"error": 1, "refused": 1}
    assert "the log plans 6 runs and has 5" in done.err
    board = prompt.run("leaderboard", "--format", "json").json
    [row] = board["models"]
    by_hand = [score(each, output_tokens=9).overall or 0 for each in (ASKS, TELLS, ASKS)]
    assert row["model_id"] == ID
    assert row["overall_score"] == pytest.approx(fmean(by_hand))
    assert row["coverage"] == pytest.approx(3 / 6)
    assert "No call asked the imported tutors. Imported from log.json" in board["note"]
    assert "Inspect AI 0.3.285" in board["note"]


def test_the_same_file_again_adds_nothing_under_any_name(prompt, log):
    first = prompt.run("import", "log.json", "--json").json
    board = prompt.run("leaderboard", "--format", "json").json
    prompt.write(json.dumps(log), "copy.json")
    again = prompt.run("import", "copy.json", "--json")
    assert again.json["experiment_ids"] == first["experiment_ids"]
    assert "nothing was added" in again.err
    assert prompt.run("leaderboard", "--format", "json").json == board
    assert prompt.run("verify").code == 0


def test_every_command_reads_an_imported_experiment_and_says_so(prompt, log):
    header = {**log["eval"], "model": "openai/n", "created": "2026-11-09T10:00:00+00:00"}
    prompt.write(json.dumps({**log, "eval": header}), "other.json")
    assert prompt.run("import", "log.json", "other.json").code == 0
    assert "status is success" not in prompt.run("status").out
    compared = prompt.run("compare", ID, "imported/inspect/openai/n")
    assert (compared.code, "openai/m (imported)" in compared.out) == (0, True)
    exported = prompt.run("export", "log").out.splitlines()
    assert {json.loads(line)["model_id"] for line in exported} == {ID}
    failed = [json.loads(line) for line in exported if "hidden" in line]
    assert [(each["overall"], each["status"]) for each in failed] == [(None, "error")]
    assert "abcdef123456" not in "".join(exported)
    assert prompt.run("rescore", "log", "--profile", "socratic-v2").code == 0
    assert "openai/m (imported)" in prompt.run("trends").out
    assert prompt.run("gate", "log", "--fail-under", "0.1").code == 0
    assert prompt.run("report", "log").code == 0
    page = (prompt.folder / "report.html").read_text()
    assert "Imported from log.json (Inspect AI 0.3.285)" in page
    assert "socratic-bench import FILE" in page
    assert "temperature" not in page


def test_no_run_asks_a_tutor_whose_answers_were_imported(prompt):
    prompt.write(f"models: [{ID}]\nrepeats: 1\n")
    done = prompt.run("run", "b.yaml")
    assert done.code == 2
    assert "its answers were imported from a file, and no call can ask it" in done.err


def test_a_part_that_cannot_be_read_is_named_and_the_rest_goes_in(prompt):
    good = {
        "id": "a",
        "model": "m",
        "messages": [said("", "user", "Hi"), said("", "assistant", ASKS)],
    }
    prompt.write(jsonl(good) + '{"id": \n' + jsonl({**good, "id": "b\ud800\0"}), "chats.jsonl")
    done = prompt.run("import", "chats.jsonl", "--json")
    assert done.code == 1
    assert (done.json["runs"], len(done.json["unread"])) == (2, 1)
    assert "Error: chats.jsonl line 2: not valid JSON" in done.err


def test_models_with_other_samples_are_experiments_of_their_own(prompt):
    records = [
        {"id": sample, "model": model, "text": ASKS}
        for model, its_samples in (("m", "abc"), ("n", "ab"), ("o", "d"))
        for sample in its_samples
    ]
    prompt.write(jsonl(*records), "answers.jsonl")
    done = prompt.run("import", "answers.jsonl", "--json")
    assert len(done.json["experiment_ids"]) == 2
    board = prompt.run("leaderboard", "--experiment", "all", "--format", "json").json
    coverage = {row["model_name"]: row["coverage"] for row in board["models"]}
    assert coverage == {
        "m (imported)": 1,
        "n (imported)": pytest.approx(2 / 3),
        "o (imported)": 1,
    }


def test_a_conversation_may_be_shorter_than_another_of_its_sample(prompt):
    turn = {"id": "a", "model": "m", "turn": 1, "text": ASKS}
    prompt.write(jsonl(turn, {**turn, "turn": 2, "text": TELLS}, turn), "a.jsonl")
    done = prompt.run("import", "a.jsonl", "--json")
    assert (done.code, done.json["runs"], done.json["answers"]) == (0, 2, 3)
    assert "Warning" not in done.err
    [row] = prompt.run("leaderboard", "--format", "json").json["models"]
    assert (row["scored_responses"], row["coverage"], row["total_runs"]) == (3, 1, 2)
    assert prompt.run("verify").code == 0


def test_an_answer_that_is_all_thoughts_has_no_score(prompt):
    prompt.write(jsonl({"id": "a", "text": f"<think>{ASKS}</think>"}, {"text": ASKS}), "a.jsonl")
    assert prompt.run("import", "a.jsonl", "--json").json["unscored"] == {"empty": 1}
    [row] = prompt.run("leaderboard", "--format", "json").json["models"]
    assert (row["statuses"], row["coverage"]) == ({"empty": 1, "ok": 1}, 0.5)


def test_a_profile_that_needs_grades_is_refused_before_anything_is_stored(prompt):
    prompt.write(jsonl({"text": ASKS, "answer_key": ["56"]}), "a.jsonl")
    done = prompt.run("import", "a.jsonl", "--profile", "socratic-v1-llm")
    assert (done.code, "import calls no model" in done.err) == (2, True)
    assert prompt.run("import", "a.jsonl", "--profile", "fidelity-1").code == 0


def test_a_file_without_an_answer_is_one_sentence(prompt):
    prompt.write("[]", "a.json")
    for name in ("a.json", "missing.json"):
        done = prompt.run("import", name)
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert done.err.startswith(f"Error: {name}")


def test_score_reads_a_log_as_import_does(prompt, log):
    done = prompt.run("score", "log.json", "--format", "jsonl")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [(each["id"], each["epoch"], each["status"]) for each in lines] == [
        ("q1", 1, "ok"),
        ("q1", 2, "ok"),
        ("q1", 3, "error"),
        ("q2", 1, "refused"),
        ("q2", 2, "ok"),
    ]
    assert lines[0]["overall"] == score(ASKS, output_tokens=9).overall
