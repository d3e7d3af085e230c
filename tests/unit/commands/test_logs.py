"""Each file of another tool gives its tutors' answers: the smallest copy of what the tool writes,
and what in it would make a wrong figure.
"""

import io
import json
import sqlite3
import sys
import zipfile
from importlib import import_module
from typing import Any

import pytest

from socratic_bench.errors import InvalidInput, MissingExtra
from socratic_cli.reading.files import NoDocuments
from socratic_cli.reading.json_stream import JsonStream
from socratic_cli.reading.logged_runs import Unread
from socratic_cli.reading.logs import opened_log, opened_records

ASKS, TELLS = "What might you try?", "You should always add."
STUDENT = "Is 2/4 more than 1/2?"


@pytest.fixture
def read(tmp_path):
    """Write a file, and return its log after reading, its runs and what could not be read."""

    def reading(content, name="a.json"):
        path = tmp_path / name
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        log = opened_log(path) or opened_records(path)
        rows = list(log.rows())
        unread = [row for row in rows if isinstance(row, Unread)]
        return log.facts, [row for row in rows if not isinstance(row, Unread)], unread

    return reading


def jsonl(*records):
    return "".join(f"{json.dumps(each)}\n" for each in records)


def answers(runs):
    return [(run.model, run.sample, [turn.text for turn in run.turns]) for run in runs]


def said(name, role, content):
    return {"id": name, "role": role, "content": content}


def event(name, reason="stop", usage=None, **more):
    choice = {"message": {"id": name}, "stop_reason": reason}
    output = {"model": "m-1", "choices": [choice], "usage": usage, "time": 1.5}
    return {"event": "model", "output": output, **more}


def sample(name, *messages, events=(), **more):
    return {
        "id": name,
        "epoch": 1,
        "input": STUDENT,
        "messages": list(messages),
        "events": list(events),
        **more,
    }


EVALUATION: dict[str, Any] = {
    "model": "openai/m",
    "task": "t",
    "created": "2026-11-02T10:00:00+00:00",
    "packages": {"inspect_ai": "0.3.285"},
    "dataset": {"samples": 2},
    "config": {"epochs": 2},
    "model_args": {"api_key": "sk-secret"},
}
HEADER = {"version": 2, "status": "success", "eval": EVALUATION}
USAGE = {"input_tokens": 15, "output_tokens": 30, "reasoning_tokens": 22, "total_tokens": 61}


def inspect(*samples, **more):
    return {**HEADER, **more, "samples": list(samples)}


def test_an_answer_of_inspect_has_the_counts_of_its_own_call(read):
    facts, [run], _ = read(
        inspect(
            sample(
                "q",
                said("s", "system", "Ask."),
                said("u1", "user", STUDENT),
                said(
                    "a1",
                    "assistant",
                    [
                        {"type": "reasoning", "reasoning": "They are equal."},
                        {"type": "text", "text": ASKS},
                    ],
                ),
                said("u2", "user", "So?"),
                said("a2", "assistant", TELLS),
                events=[event("a1", usage=USAGE), event("a2", "max_tokens")],
                output=event("a2", "max_tokens")["output"],
            )
        )
    )
    first, last = run.turns
    assert (run.model, run.sample, run.repeat, run.system_prompt) == ("openai/m", "q", 1, "Ask.")
    assert (first.student, first.text, first.output_tokens) == (STUDENT, ASKS, 8)
    assert (first.reasoning_tokens, first.input_tokens, first.latency_ms) == (22, 31, 1500)
    assert (last.student, last.status, last.output_tokens) == ("So?", "truncated", None)
    assert (facts.version, facts.planned, facts.remarks) == ("0.3.285", 4, [])


@pytest.mark.parametrize(
    ("given", "texts", "status", "error"),
    [
        # A provider's 400 stands in the answer's place, with a stop reason and without a usage.
        (
            sample(
                "q", said("a", "assistant", "400: too long"), events=[event("a", "model_length")]
            ),
            ["400: too long"],
            "error",
            "model_length: 400: too long",
        ),
        (
            sample(
                "q", said("a", "assistant", "Cut"), events=[event("a", "content_filter", USAGE)]
            ),
            ["Cut"],
            "refused",
            None,
        ),
        # The solver or scorer raised after the answer.
        (
            sample("q", said("a", "assistant", ASKS), error={"message": "no\nscore"}),
            [ASKS],
            "ok",
            "no score",
        ),
        (sample("q", error={"message": "boom"}), [], None, "boom"),
        (
            sample(
                "q", said("a", "assistant", [{"type": "text", "refusal": True, "text": "I can't."}])
            ),
            ["I can't."],
            "refused",
            None,
        ),
        # An answer that the sample's input has is nobody's here; a tool's call is none.
        (
            sample(
                "q",
                said("g", "assistant", TELLS),
                said("u", "user", STUDENT),
                {**said("c", "assistant", ""), "tool_calls": [{"id": "1"}]},
                said("a", "assistant", ASKS),
                input=[said("g", "assistant", TELLS), said("u", "user", STUDENT)],
            ),
            [ASKS],
            "ok",
            None,
        ),
    ],
)
def test_what_inspect_keeps_in_an_answers_place_is_told_apart(read, given, texts, status, error):
    _, [run], _ = read(inspect(given))
    assert ([turn.text for turn in run.turns], run.error) == (texts, error)
    assert [turn.status for turn in run.turns] == ([status] if status else [])


def test_the_characters_that_mockllm_counts_are_no_tokens(read):
    given = inspect(sample("q", said("a", "assistant", ASKS), events=[event("a", usage=USAGE)]))
    given["eval"] = {**EVALUATION, "model": "mockllm/m"}
    _, [run], _ = read(given)
    assert (run.turns[0].output_tokens, run.turns[0].input_tokens) == (None, None)


def archive(members, method=zipfile.ZIP_DEFLATED, module=zipfile):
    file = io.BytesIO()
    with module.ZipFile(file, "w", method) as opened:
        for name, content in members.items():
            opened.writestr(name, content if isinstance(content, str) else json.dumps(content))
    return file.getvalue()


GOOD = sample("a/b c", said("a", "assistant", ASKS))


def test_a_broken_sample_of_an_archive_costs_no_other_and_an_unfinished_log_says_so(read):
    members = {
        "_journal/start.json": {"version": 2, "eval": EVALUATION},
        "samples/a/b c_epoch_1.json": GOOD,
        "samples/bad_epoch_1.json": "{",
        "samples/deep_epoch_1.json": "[" * 100_000,
        "samples/none_epoch_1.json": {"epoch": 1},
    }
    facts, [run], unread = read(archive(members), "x.eval")
    assert answers([run]) == [("openai/m", "a/b c", [ASKS])]
    assert [each.place.rpartition("samples/")[2] for each in unread] == [
        "bad_epoch_1.json",
        "deep_epoch_1.json",
        "none_epoch_1.json",
    ]
    assert facts.remarks == ["the log's status is started"]


def test_an_archive_that_unpacks_to_far_more_than_a_log_is_refused(read):
    members = {"_journal/start.json": HEADER, "samples/a.json": " " * 9_000_000}
    with pytest.raises(InvalidInput, match="unpacks to"):
        read(archive(members), "x.eval")


def test_a_log_in_zstandard_is_read(read):
    name = "zipfile" if hasattr(zipfile, "ZIP_ZSTANDARD") else "backports.zstd.zipfile"
    module = import_module(name)
    members = {"header.json": HEADER, "samples/a_epoch_1.json": GOOD}
    facts, [run], _ = read(archive(members, module.ZIP_ZSTANDARD, module), "x.eval")
    assert (run.sample, facts.remarks) == ("a/b c", [])


def test_a_log_in_zstandard_names_the_extra_that_reads_it(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "backports.zstd.zipfile", None)
    monkeypatch.delattr(zipfile, "ZIP_ZSTANDARD", raising=False)
    stored = archive({"_journal/start.json": HEADER}, zipfile.ZIP_STORED)
    for place, signature in ((8, b"PK\3\4"), (10, b"PK\1\2")):
        at = stored.index(signature) + place
        stored = stored[:at] + b"\x5d" + stored[at + 1 :]
    with pytest.raises(MissingExtra, match="inspect log convert"):
        read(stored, "x.eval")


@pytest.mark.parametrize(
    "content",
    # An archive holds its time of writing, and each process of tests writes its own.
    [
        pytest.param(b"PK\x03\x04_journal/", id="cut off"),
        pytest.param(archive({"_journal/start.json": "["}), id="no JSON in it"),
    ],
)
def test_a_damaged_archive_is_one_sentence(read, content):
    with pytest.raises(InvalidInput, match="log of Inspect AI"):
        read(content, "x.eval")


def test_a_log_that_breaks_off_has_the_samples_before(read):
    whole = json.dumps(inspect(GOOD, GOOD))
    _, runs, [unread] = read(whole[:-60])
    assert len(runs) == 1
    assert "after sample" in unread.place


def row(test, output, prompt=0, raw=STUDENT, provider="p", **more):
    usage = {"tokenUsage": {"prompt": 20, "completion": 6, "total": 26}}
    return {
        "promptIdx": prompt,
        "testIdx": test,
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": raw},
        "vars": {"q": test // 2},
        "failureReason": 0,
        "latencyMs": 40,
        "response": {"output": output, "finishReason": "stop", **usage},
        **more,
    }


def promptfoo(*rows):
    prompts = [{"provider": "p"}, {"provider": "q"}]
    return {
        "evalId": "e",
        "results": {"version": 3, "timestamp": 1, "prompts": prompts, "results": rows},
        "config": {"tests": [{}, {}, {}]},
        "metadata": {"promptfooVersion": "0.123.1"},
        "runtimeOptions": {"repeat": 2},
    }


@pytest.mark.parametrize("as_lines", [False, True])
def test_rows_of_promptfoo_have_the_repeats_of_their_test(read, as_lines):
    rows = [
        row(1, "b"),
        row(0, "a", error="Expected output to contain", failureReason=1),
        row(2, "Error 400", failureReason=2, error="API error: 400"),
        row(3, None, error="No output"),
        row(0, {"a": 1}),
    ]
    given = jsonl(*rows) if as_lines else promptfoo(*rows)
    facts, runs, [unread] = read(given, "r.json")
    shown = [(run.sample, [turn.text for turn in run.turns], run.error) for run in runs]
    assert shown == [
        ("test 1", ["b"], None),
        ("test 1", ["a"], None),
        ("test 2", [], "API error: 400"),
        ("test 2", [], "No output"),
    ]
    [turn] = runs[0].turns
    assert (turn.output_tokens, turn.input_tokens, turn.latency_ms) == (6, 20, 40)
    assert "no text" in unread.problem
    # A 401 ends all providers: the file is well-formed, and has less than it planned.
    assert (facts.version, facts.planned) == ((None, None) if as_lines else ("0.123.1", 12))


def test_prompts_of_one_provider_are_tutors_of_their_own(read):
    chat = json.dumps([said("s", "system", "Ask."), said("u", "user", STUDENT)])
    _, runs, _ = read(promptfoo(row(0, "a"), row(0, "b", 1, chat), row(0, "c", 2, provider="q")))
    models = ["p · prompt 1", "p · prompt 2", "q"]
    assert [run.model for run in runs] == models
    assert [run.turns[0].student for run in runs] == [STUDENT] * 3
    assert [run.system_prompt for run in runs] == [None, "Ask.", None]


def test_a_dialogue_of_promptfoo_is_one_run_in_the_order_of_its_tests(read):
    of = {"testCase": {"metadata": {"conversationId": "c"}}}
    _, [run], _ = read(promptfoo(row(2, "b", raw="So?", **of), row(0, "a", **of)))
    assert answers([run]) == [("p", "c", ["a", "b"])]
    messages = [said("u", "user", STUDENT), said("a", "assistant", ASKS)]
    whole = row(0, f"User: {STUDENT}\n---\nAssistant: {ASKS}", metadata={"messages": messages * 2})
    _, [run], _ = read(promptfoo(whole))
    assert answers([run]) == [("p", "test 0", [ASKS, ASKS])]


def test_a_cached_answer_of_promptfoo_has_no_count_and_no_latency(read):
    given = row(0, ASKS)
    given["response"] |= {"cached": True, "tokenUsage": {"completion": 0, "cached": 26}}
    _, [run], _ = read(promptfoo(given))
    [turn] = run.turns
    assert (turn.output_tokens, turn.input_tokens, turn.latency_ms) == (None, None, None)


def test_chats_and_batches_in_openais_format_are_runs_of_their_model(read):
    body = {
        "model": "m",
        "choices": [{"message": {"content": ASKS}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 30,
            "completion_tokens_details": {"reasoning_tokens": 22},
        },
    }
    chat = [said("u", "user", STUDENT), said("a", "assistant", ASKS), said("v", "user", "So?")]
    _, runs, [unread] = read(
        jsonl(
            {"custom_id": "q1", "response": {"status_code": 200, "body": body}},
            {"custom_id": "q2", "response": None, "error": {"message": "expired"}},
            {"id": 7, "model": "n", "messages": [*chat, said("b", "assistant", TELLS)]},
            {"id": 8, "messages": [{"role": "alien", "content": "x"}]},
        ),
        "batch.jsonl",
    )
    assert answers(runs) == [
        ("m", "q1", [ASKS]),
        ("batch", "q2", []),
        ("n", "7", [ASKS, TELLS]),
    ]
    [turn] = runs[0].turns
    assert (turn.output_tokens, turn.reasoning_tokens, turn.input_tokens) == (8, 22, 9)
    assert runs[1].error == "expired"
    assert unread.place.endswith("line 4")


def test_rows_of_one_conversation_join_by_their_turn(read):
    first = {"scenario_id": "s", "model_id": "m", "repeat": 2, "turn": 1, "response": ASKS}
    first["user"] = STUDENT
    lost = {**first, "scenario_id": "t", "turn": 2}
    _, runs, [unread] = read(jsonl(first, {**first, "turn": 2, "response": TELLS}, lost), "a.jsonl")
    assert runs[0].turns[0].student == STUDENT
    assert [(*each, run.repeat) for each, run in zip(answers(runs), runs, strict=True)] == [
        ("m", "s", [ASKS, TELLS], 2)
    ]
    assert "turn 2 does not follow" in unread.problem


def test_answers_for_alpaca_eval_are_those_of_their_generators(read):
    given = [
        {"instruction": STUDENT, "output": ASKS, "generator": "m", "dataset": "koala"},
        {"instruction": STUDENT, "output": TELLS, "generator": "n", "dataset": "koala"},
    ]
    _, runs, _ = read(given)
    assert answers(runs) == [("m", "", [ASKS]), ("n", "", [TELLS])]
    assert {(run.turns[0].student, run.dimension) for run in runs} == {(STUDENT, "koala")}


def node(parent, role=None, text="", **more):
    message = role and {
        "author": {"role": role},
        "content": {"content_type": "text", "parts": [text]},
        **more,
    }
    return {"parent": parent, "message": message}


CHATGPT = {
    "id": "c",
    "mapping": {
        "r": node(None),
        "s": node("r", "system"),
        "u": node("s", "user", STUDENT),
        "old": node("u", "assistant", TELLS),
        "t": node("u", "assistant", "search()", recipient="web"),
        "a": node("t", "assistant", ASKS, metadata={"model_slug": "m"}),
    },
    "current_node": "a",
}
CLAUDE = {
    "uuid": "c",
    "chat_messages": [
        {"uuid": "1", "sender": "human", "text": STUDENT, "parent_message_uuid": "0"},
        {"uuid": "2", "sender": "assistant", "text": TELLS, "parent_message_uuid": "1"},
        {
            "uuid": "3",
            "sender": "assistant",
            "text": "",
            "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": ASKS}],
            "parent_message_uuid": "1",
        },
    ],
}
WEBUI = {
    "id": "c",
    "chat": {
        "history": {
            "currentId": "3",
            "messages": {
                "1": {"role": "user", "content": STUDENT, "parentId": None},
                "2": {"role": "assistant", "content": TELLS, "parentId": "1"},
                "3": {"role": "assistant", "content": ASKS, "parentId": "1"},
            },
        }
    },
}
ANSWER = {"isCreatedByUser": False, "text": ASKS, "children": []}
LIBRECHAT = {
    "conversationId": "c",
    "messagesTree": [
        {"isCreatedByUser": True, "text": STUDENT, "children": [{**ANSWER, "text": TELLS}, ANSWER]}
    ],
}
CHATBOT_UI = {
    "version": 4,
    "history": [{"id": "c", "messages": [said("", "user", STUDENT), said("", "assistant", ASKS)]}],
}


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ([CHATGPT, {"title": "no mapping"}], "chatgpt"),
        ([CLAUDE], "claude"),
        ([WEBUI], "open-webui"),
        (LIBRECHAT, "librechat"),
        (CHATBOT_UI, "chatbot-ui"),
    ],
)
def test_a_chat_export_is_read_along_the_branch_that_the_person_saw(read, given, model):
    facts, runs, unread = read(json.dumps(given, indent=1))
    assert (answers(runs), unread) == ([(model, "c", [ASKS])], [])
    assert runs[0].turns[0].student == STUDENT
    assert facts.slug == "chat"


def test_a_circle_of_parents_ends(read):
    given = {**CHATGPT, "mapping": {"a": node("a", "assistant", ASKS)}}
    _, [run], _ = read([given])
    assert run.turns[0].text == ASKS


LESSON = f"""\
,Turn,Speaker,Sentence,Teacher Tag
1,1,Sam's Mum,Hi.,
2,1,Sam's Mum,{ASKS},2
3,2,S,Yes.,
4,3,T1:,{TELLS},
"""
DEBUGGING = f"""\
<problem>
Add up.
</problem>
<dialogue>
User: {STUDENT}
\t<alt>So?
Assistant: {ASKS}
\t<alt>{TELLS}
x = 1
</dialogue>
"""
SPOKEN = [{"user": "Student", "text": STUDENT}, {"user": "Teacher", "text": ASKS}]
PAIR = f"\n\nHuman: {STUDENT}\n\nAssistant: "


@pytest.mark.parametrize(
    ("name", "given", "found"),
    [
        (
            "a.csv",
            f'qid,conversation\n1,"Sam: {STUDENT}|EOM|Teacher: (focus){ASKS}|EOM|Teacher: (x)"\n',
            [("teacher", "1", [ASKS, "(x)"])],
        ),
        (
            "lesson.csv",
            LESSON,
            [("teacher", "lesson", [f"Hi. {ASKS}", TELLS])],
        ),
        (
            "bug.txt",
            DEBUGGING,
            [("assistant", "bug", [f"{ASKS}\nx = 1"])],
        ),
        (
            "a.jsonl",
            jsonl({"qid": 1, "conversation": f"Sam: {STUDENT}|EOM|Teacher: (focus){ASKS}"}),
            [("teacher", "1", [ASKS])],
        ),
        (
            "a.json",
            [
                {
                    "conversation_id": "c",
                    "conversation_history": f"Tutor: Hi\n\u00a0Student: {STUDENT}",
                    "anno_llm_responses": {"m": {"response": ASKS}, "n": {"response": TELLS}},
                }
            ],
            [("m", "c", [ASKS]), ("n", "c", [TELLS])],
        ),
        (
            "a.json",
            {
                "prepDataset": {
                    "1": {"past_convo": ["Hi", STUDENT], "tutorResponses": [ASKS, TELLS]}
                }
            },
            [("tutor", "prepDataset 1", [ASKS]), ("tutor", "prepDataset 1", [TELLS])],
        ),
        (
            "a.json",
            [
                {
                    "c_id": "c",
                    "c_h": [{"user": "tutor", "text": "Hi"}, {"user": "student", "text": STUDENT}],
                    "c_r": [{"user": "tutor", "text": ASKS}, {"user": "tutor", "text": "So?"}],
                    "c_r_": [{"user": "tutor", "text": TELLS}],
                }
            ],
            [("tutor", "c", [f"{ASKS}\nSo?"]), ("expert", "c", [TELLS])],
        ),
        (
            "a.json",
            {
                "p1": {
                    "question": STUDENT,
                    "steps": [],
                    "dialogues": {"1": [{"system": ASKS, "user": "So"}, {"system": TELLS}]},
                }
            },
            [("teacher", "p1 1", [ASKS, TELLS])],
        ),
        ("a.json", [{"id": 3, "dialog_history": SPOKEN}], [("teacher", "3", [ASKS])]),
        (
            "a.json",
            {
                "metadata": {"model": "m"},
                "interactions": [
                    {"chat_history": [{"role": each["user"], "content": each["text"]}]}
                    for each in SPOKEN
                ],
            },
            [("m", "dialogue 2", [ASKS])],
        ),
        (
            "a.jsonl",
            jsonl({"chosen": PAIR + ASKS, "rejected": PAIR + TELLS}),
            [("chosen", STUDENT, [ASKS]), ("rejected", STUDENT, [TELLS])],
        ),
        (
            "a.jsonl",
            jsonl(
                {
                    "message_tree_id": "t",
                    "prompt": {
                        "role": "prompter",
                        "text": STUDENT,
                        "replies": [{"role": "assistant", "text": ASKS, "replies": []}],
                    },
                }
            ),
            [("assistant", "t", [ASKS])],
        ),
        (
            "a.jsonl",
            jsonl(
                {"conversation_id": "c", "role": "user", "text": STUDENT},
                {"conversation_id": "c", "role": "assistant", "text": ASKS},
                {"conversation_id": "d", "role": "assistant", "text": TELLS},
            ),
            [("a", "c", [ASKS]), ("a", "d", [TELLS])],
        ),
    ],
)
def test_a_tutoring_set_is_read_by_who_speaks(read, name, given, found):
    _, runs, unread = read(given, name)
    assert (answers(runs), unread) == (found, [])


def test_samples_of_lm_eval_count_once_whatever_their_filters(read, tmp_path):
    name = "2026-11-27T05-21-26.766915"
    results = {
        "model_name": "m",
        "lm_eval_version": "0.4.13",
        "date": 1_764_000_000.5,
        "n-samples": {"gsm": {"effective": 2}},
    }
    (tmp_path / f"results_{name}.json").write_text(json.dumps(results))
    prompt = json.dumps([said("s", "system", "Ask."), said("u", "user", STUDENT)])
    given = {"doc_id": 0, "doc": {}, "arguments": {"gen_args_0": {"arg_0": [prompt]}}}
    facts, runs, [unread] = read(
        jsonl(
            {**given, "resps": [[ASKS, TELLS]], "filter": "none"},
            {**given, "resps": [[ASKS, TELLS]], "filter": "strict"},
            {**given, "doc_id": 1, "resps": [[["-0.26", "False"]]], "filter": "none"},
        ),
        f"samples_gsm_{name}.jsonl",
    )
    assert answers(runs) == [("m", "gsm 0", [ASKS]), ("m", "gsm 0", [TELLS])]
    assert [(run.repeat, run.system_prompt) for run in runs] == [(1, "Ask."), (2, "Ask.")]
    assert "likelihoods" in unread.problem
    assert (facts.version, facts.planned) == ("0.4.13", 2)


def database(folder, *statements):
    file = folder / "made.db"
    with sqlite3.connect(file) as opened:
        for statement in (
            "create table _llm_migrations (name text)",
            "create table fragments (id integer, content text)",
            "create table prompt_fragments (response_id, fragment_id, 'order')",
            *statements,
        ):
            opened.execute(statement)
    opened.close()
    return file.read_bytes()


def test_both_layouts_of_the_database_of_llm_are_read(read, tmp_path):
    columns = (
        "model, resolved_model, datetime_utc, duration_ms, input_tokens, output_tokens, "
        "token_details"
    )
    counts = "'m', 'm-1', '2026-11-02T10:00:00', 40, 9, 30, '{\"reasoning_tokens\": 22}'"
    given = database(
        tmp_path,
        f"create table responses (id, conversation_id, prompt, system, response, response_json, "
        f"{columns})",
        f"insert into responses values ('1', 'c', 'Is it?', 'Ask.', 'So?', "
        f'\'{{"finish_reason": "length"}}\', {counts})',
        "insert into fragments values (5, 'A long text.')",
        "insert into prompt_fragments values ('1', 5, 0)",
        f"create table turns (id, thread_id, parent_message_hash, tip_message_hash, {columns})",
        "create table messages (hash, parent_hash, role)",
        "create table parts (message_hash, position, type, text, payload)",
        "insert into messages values ('s', null, 'system'), ('u', 's', 'user'), "
        "('a', 'u', 'assistant'), ('v', 'a', 'user'), ('b', 'v', 'assistant')",
        f"insert into turns values ('1', 't', 'u', 'a', {counts}), ('2', 't', 'v', 'b', {counts})",
        "insert into parts values ('s', 0, 'text', 'Ask.', null), "
        '(\'u\', 0, \'text\', null, \'{"text_ref": [{"fragment": 5}, {"literal": " Why?"}]}\'), '
        "('a', 0, 'reasoning', 'Hm', null), ('a', 1, 'text', 'One?', null), "
        "('v', 0, 'text', 'So?', null), ('b', 0, 'text', 'Two?', null)",
    )
    _, runs, _ = read(given, "logs.db")
    assert answers(runs) == [("m", "c", ["So?"]), ("m", "t", ["One?", "Two?"])]
    old, (first, second) = runs[0].turns[0], runs[1].turns
    assert (old.student, old.status, old.output_tokens) == ("A long text.\nIs it?", "truncated", 8)
    assert (first.student, second.student) == ("A long text. Why?", "So?")
    assert [run.system_prompt for run in runs] == ["Ask.", "Ask."]
    assert {each.name for each in tmp_path.iterdir()} == {"made.db", "logs.db"}


def test_the_array_of_llm_is_joined_by_conversation(read):
    turn = {"model": "m", "conversation_id": "c", "duration_ms": 4, "output_tokens": 0}
    _, [run], _ = read(
        [
            {**turn, "prompt": STUDENT, "response": ASKS},
            {**turn, "prompt": "So?", "response": TELLS},
        ]
    )
    assert answers([run]) == [("m", "c", [ASKS, TELLS])]
    assert run.turns[0].output_tokens is None


def test_a_database_of_another_shape_is_one_sentence(read, tmp_path):
    with pytest.raises(InvalidInput, match="the database of llm, and cannot be read"):
        list(read(database(tmp_path, "create table responses (text)"), "logs.db"))


def test_generations_of_langfuse_are_runs_and_its_errors_are_none(read):
    given = {
        "id": "o",
        "traceId": "t",
        "type": "GENERATION",
        "name": "tutor",
        "model": "m",
        "input": json.dumps([said("s", "system", "Ask."), said("u", "user", STUDENT)]),
        "output": {"role": "assistant", "content": ASKS},
        "usageDetails": {"input": 9, "output": 8, "output_reasoning_tokens": 22},
        "latency": 1.5,
        "level": "DEFAULT",
    }
    rows = [
        given,
        {**given, "type": "SPAN"},
        {**given, "output": None, "level": "ERROR", "statusMessage": "429"},
        {**given, "output": {"a": 1}},
    ]
    for export in (jsonl(*rows), rows, {"data": rows, "meta": {}}):
        _, runs, [unread] = read(export, "export.json")
        assert answers(runs) == [("m", "", [ASKS]), ("m", "", [])]
        assert [run.error for run in runs] == [None, "429"]
        [turn] = runs[0].turns
        assert (turn.student, turn.output_tokens, turn.latency_ms) == (STUDENT, 8, 1500)
        assert unread.problem == "cannot be read: `output` holds no text"


class Slow(io.BytesIO):
    """Gives a few bytes at a time, so that every value is cut somewhere."""

    def read(self, size=-1):
        return super().read(min(size, 3) if size > 0 else size)


@pytest.mark.parametrize("text", ['{"a": [1, 23, "é\\"", {}], "b": -1.5e3}', "[[], 12345]"])
def test_a_stream_gives_what_the_whole_document_has(text):
    def taken(stream):
        if stream.peek() == "{":
            return {key: taken(stream) for key in stream.members()}
        if stream.peek() == "[":
            return [taken(stream) for _ in stream.items()]
        return stream.value()

    assert taken(JsonStream(Slow(text.encode()))) == json.loads(text)


@pytest.mark.parametrize("text", ["[1", '{"a"', '{"a": 1 2}', "[" * 100_000, "[1 2]", '["a'])
def test_a_stream_says_where_a_document_breaks(text):
    stream = JsonStream(io.BytesIO(text.encode()))
    parts = stream.members() if text[0] == "{" else stream.items()
    with pytest.raises(NoDocuments, match="at character"):
        [stream.value() for _ in parts]
