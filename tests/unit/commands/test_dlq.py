"""`socratic-bench dlq`: lists dead letters as they are, puts them back, or deletes them."""

import asyncio
import base64
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.errors import BrokerUnavailable
from socratic_bench.events.codec import Message
from socratic_bench.ports.broker import DeadLetter
from socratic_cli.commands.dlq import _as_json

JUDGE, CURATOR = "judge-response-recorded", "curator-run-failed"


def test_without_dead_letters_it_says_so_and_names_the_queues_it_looked_into(prompt, broker):
    done = prompt.run("dlq", "list")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("No dead letters in ")
    assert all(queue.name in done.err for queue in WORK_QUEUES)


def test_the_letters_of_all_queues_are_listed_with_their_reasons_and_counted(prompt, broker):
    asyncio.run(broker.bury(JUDGE, "no event of this version", b"{}", b"[]", group="gpt/x"))
    asyncio.run(broker.bury(CURATOR, "handler failed", b"{}"))
    done = prompt.run("dlq", "list")
    heading, *rows = done.out.splitlines()
    assert heading.split() == ["queue", "message", "id", "group", "attempts", "reason"]
    assert [row.split()[:4] for row in rows] == [
        [JUDGE, "m-1", "gpt/x", "1"],
        [JUDGE, "m-2", "gpt/x", "1"],
        [CURATOR, "m-1", "a/b", "1"],
    ]
    assert "no event of this version" in rows[0]
    assert f"{JUDGE}: 2 dead letters." in done.err
    assert f"{CURATOR}: 1 dead letter." in done.err


def test_looking_at_letters_leaves_them_where_they_are(prompt, broker):
    asyncio.run(broker.bury(JUDGE, "why", b"{}"))
    assert prompt.run("dlq", "list").out == prompt.run("dlq", "list", JUDGE).out


def test_a_limit_lists_the_oldest_and_says_that_there_are_more(prompt, broker):
    asyncio.run(broker.bury(JUDGE, "why", b"1", b"2", b"3"))
    done = prompt.run("dlq", "list", JUDGE, "--json", "--limit", "2")
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["m-1", "m-2"]
    assert f"{JUDGE}: more than 2 dead letters" in done.err
    assert "3 dead letters." in prompt.run("dlq", "list", JUDGE, "--limit", "3").err


def test_what_a_message_says_can_neither_steer_the_terminal_nor_the_table(prompt, broker):
    asyncio.run(
        broker.bury(JUDGE, "\x1b[2J[red]gone[/red] :bomb:\r\nfake row", b"{}", group="[b]\x07g")
    )
    done = prompt.run("dlq", "list")
    assert "\x1b" not in done.out
    assert "\x07" not in done.out
    assert "[red]gone[/red] :bomb: fake row" in done.out
    assert "[b]\ufffdg" in done.out
    assert len(done.out.splitlines()) == 2


def test_json_is_an_object_a_line_with_the_body_as_it_is(prompt, broker):
    event, garbage = '{"a": "ü\u0007",\n "n": 1.0}'.encode(), b"\xff\x00\n"
    asyncio.run(broker.bury(JUDGE, "line one\nline two", event, garbage))
    done = prompt.run("dlq", "list", "--json")
    first, second = map(json.loads, done.out.splitlines())
    assert first == {
        "queue": JUDGE,
        "id": "m-1",
        "type": "org.socratic-bench.response.recorded.v1",
        "group": "a/b",
        "attempts": 1,
        "reason": "line one\nline two",
        "body": event.decode(),
        "body_base64": None,
    }
    assert (second["body"], base64.b64decode(second["body_base64"])) == (None, garbage)
    assert done.out.isascii()


@given(st.binary(max_size=50) | st.text(max_size=50).map(str.encode))
def test_any_body_can_be_had_back_from_its_json(body):
    letter = DeadLetter(Message("m", "t", "g", body), "q", "why", 1)
    line = json.dumps(_as_json(letter))
    shown = json.loads(line)
    assert "\n" not in line
    if shown["body"] is None:
        assert base64.b64decode(shown["body_base64"]) == body
    else:
        assert shown["body"].encode() == body


def test_redriven_letters_wait_in_their_queue_again(prompt, broker):
    asyncio.run(broker.bury(JUDGE, "why", b"1", b"2"))
    asyncio.run(broker.bury(CURATOR, "why", b"3"))
    done = prompt.run("dlq", "redrive", JUDGE)
    assert (done.code, done.err) == (0, f"{JUDGE}: 2 dead letters put back.\n")
    assert asyncio.run(broker.depth(JUDGE)) == 2
    assert f"{CURATOR}: 1 dead letter." in prompt.run("dlq", "list").err
    assert f"{CURATOR}: 1 dead letter put back." in prompt.run("dlq", "redrive").err
    assert prompt.run("dlq", "list").out == ""


def test_the_limit_of_a_redrive_holds_for_all_queues_together(prompt, broker):
    asyncio.run(broker.bury(JUDGE, "why", b"1", b"2", b"3"))
    asyncio.run(broker.bury(CURATOR, "why", b"4"))
    assert f"{JUDGE}: 2 dead letters put back." in prompt.run("dlq", "redrive", "--limit", "2").err
    left = prompt.run("dlq", "list").err
    assert f"{JUDGE}: 1 dead letter." in left
    assert f"{CURATOR}: 1 dead letter." in left


def test_purged_letters_are_gone_and_those_of_other_queues_are_not(prompt, broker):
    asyncio.run(broker.bury(JUDGE, "why", b"1", b"2"))
    asyncio.run(broker.bury(CURATOR, "why", b"3"))
    done = prompt.run("dlq", "purge", JUDGE, "--yes")
    assert (done.code, done.err) == (0, f"{JUDGE}: 2 dead letters deleted.\n")
    assert prompt.run("dlq", "list").err == f"{CURATOR}: 1 dead letter.\n"
    assert asyncio.run(broker.depth(JUDGE)) == 0


def test_where_nobody_can_be_asked_nothing_is_purged_without_yes(prompt, broker, monkeypatch):
    asyncio.run(broker.bury(JUDGE, "why", b"1"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    done = prompt.run("dlq", "purge", JUDGE)
    assert done.code == 2
    assert "--yes" in done.err
    assert prompt.run("dlq", "list").out


@pytest.mark.parametrize(("answer", "code", "left"), [(True, 0, 0), (False, 1, 1)])
def test_a_person_is_asked_before_letters_are_thrown_away(
    prompt, broker, monkeypatch, answer, code, left
):
    asyncio.run(broker.bury(JUDGE, "why", b"1"))
    questions = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)

    def confirm(text, **_):
        questions.append(text)
        return answer

    monkeypatch.setattr("click.confirm", confirm)
    assert prompt.run("dlq", "purge", JUDGE).code == code
    assert questions == [f"Delete all dead letters of {JUDGE}, for good?"]
    assert len(asyncio.run(broker.dead_letters(JUDGE))) == left


@pytest.mark.parametrize("action", [["list"], ["redrive"], ["purge", "--yes"]])
def test_a_queue_out_of_order_is_named_first_and_is_a_failed_check(prompt, broker, action):
    asyncio.run(broker.bury(JUDGE, "why", b"1"))
    broker.wrong = {JUDGE: "queue 'judge' has no leader: do this", CURATOR: "something else"}
    done = prompt.run("dlq", *action, JUDGE)
    assert done.code == 1
    first, *others = done.err.splitlines()
    assert first == "queue 'judge' has no leader: do this."
    assert others == [next(line for line in others if line.startswith(f"{JUDGE}: 1 dead letter"))]


def test_what_is_out_of_order_is_the_first_object_of_the_json(prompt, broker):
    asyncio.run(broker.bury(JUDGE, "why", b"1"))
    broker.wrong = {CURATOR: "queue 'curator' is missing: do that"}
    done = prompt.run("dlq", "list", "--json")
    problem, letter = map(json.loads, done.out.splitlines())
    assert (done.code, problem) == (1, {"problem": "queue 'curator' is missing: do that"})
    assert letter["id"] == "m-1"
    assert done.err.startswith("queue 'curator' is missing: do that.\n")


def test_what_is_out_of_order_is_said_although_the_broker_then_fails(prompt, broker, monkeypatch):
    async def fail(*_):
        raise BrokerUnavailable("the broker has not confirmed a message")

    broker.wrong = {JUDGE: "queue 'judge' has no leader: do this"}
    monkeypatch.setattr(broker, "redrive", fail)
    done = prompt.run("dlq", "redrive", JUDGE)
    assert done.code == 1
    assert done.err.startswith("queue 'judge' has no leader: do this.\n")
    assert "has not confirmed" in done.err


@pytest.mark.parametrize("action", ["list", "redrive", "purge"])
def test_an_unknown_queue_is_refused_and_those_there_are_named(prompt, broker, action):
    done = prompt.run("dlq", action, "judge")
    assert done.code == 2
    assert all(queue.name in done.err for queue in WORK_QUEUES)
    assert broker.opened == []


def test_without_a_broker_it_says_how_to_name_one(prompt):
    done = prompt.run("dlq", "list")
    assert done.code == 2
    assert "--broker" in done.err
    assert "SOCRATIC_BROKER_URL" in done.err
