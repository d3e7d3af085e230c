"""`score` reads rows by their speaker, and every answer of a row."""

import json

import pytest

from socratic_bench.scoring.score import score


def lines_of(done):
    return [json.loads(line) for line in done.out.splitlines()]


def csv(head, *rows):
    return "\n".join((head, *rows)) + "\n"


def jsonl(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


ASKS, TELLS = "Why do you think so?", "It is 54."
"""What the tutor and the student say: figures of 1 and of 0."""

NAMES = [
    ("user", "assistant"),
    ("human", "gpt"),
    ("Human", "Tutor "),
    ("PROMPTER", "bot"),
    ("Student:", "T1:"),
    ("Seeker", "Teacher"),
    ("SS", "T"),
    ("learner", "Ms. Lee"),
    ("student 2", "tutor_1"),
]


@pytest.mark.parametrize("field", ["role", "from", "sender", "user", "speaker", "Speaker"])
@pytest.mark.parametrize(("student", "tutor"), NAMES)
def test_only_the_rows_of_the_tutor_are_scored(prompt, field, student, tutor):
    rows = [{field: student, "text": TELLS}, {field: tutor, "text": ASKS}]
    prompt.write(jsonl(*rows, {field: "system", "text": TELLS}), "a.jsonl")
    done = prompt.run("score", "a.jsonl", "--format", "jsonl")
    assert [line["interrogative"] for line in lines_of(done)] == [1.0]
    assert done.err == ("Note: 2 rows are left out: 1 of a student, 1 of a system or a tool\n")
    assert done.code == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", csv("speaker,text", f"Student,{TELLS}", f"Tutor,{ASKS}")),
        ("a.csv", csv("Speaker;text", f"S;{TELLS}", f"T1:;{ASKS}")),
        ("a.tsv", csv("text\tSpeaker", f"{TELLS}\tstudent", f"{ASKS}\tteacher")),
        ("a.csv", csv("isCreatedByUser,text", f"True,{TELLS}", f"False,{ASKS}")),
        ("a.csv", csv("author.role,content", f"user,{TELLS}", f"assistant,{ASKS}")),
        (
            "a.jsonl",
            jsonl(
                {"isCreatedByUser": True, "sender": "Sam", "text": TELLS},
                {"isCreatedByUser": False, "sender": "tutor-x", "text": ASKS},
            ),
        ),
        (
            "a.json",
            json.dumps(
                [
                    {"author": {"role": "user"}, "content": {"parts": [TELLS]}},
                    {"author": {"role": "assistant"}, "content": {"parts": [ASKS]}},
                ],
                indent=1,
            ),
        ),
        (
            "a.jsonl",
            jsonl(
                {"sender": "human", "text": TELLS},
                {"sender": "assistant", "text": "", "content": [{"type": "text", "text": ASKS}]},
            ),
        ),
        (
            "a.jsonl",
            jsonl(
                {"role": "user", "parts": [{"text": TELLS}]},
                {"role": "model", "parts": [{"text": "Hm", "thought": True}, {"text": ASKS}]},
            ),
        ),
        (
            "a.jsonl",
            jsonl({"type": "human", "content": TELLS}, {"type": "ai", "content": ASKS}),
        ),
        (
            "a.jsonl",
            jsonl(
                {"message": {"role": "user", "content": TELLS}, "type": "user"},
                {"message": {"role": "assistant", "content": ASKS}, "type": "assistant"},
            ),
        ),
        ("a.txt", f"Student: {TELLS}\nTutor: {ASKS}\n"),
        ("a.txt", f"user:{TELLS}\r\rAI : {ASKS}\r"),
        ("a.txt", f"System: Ask.\n\nHuman: Hm.\n{TELLS}\n\nAssistant: {ASKS}\n"),
    ],
)
def test_what_the_student_says_is_the_message_before_the_answer(prompt, name, content):
    prompt.write(content, name)
    done = prompt.run("score", name, "--format", "jsonl", "--profile", "socratic-v2")
    (line,) = lines_of(done)
    said = f"Hm.\n{TELLS}" if "Hm.\n" in content else TELLS
    expected = score(ASKS, student_message=said, profile="socratic-v2").as_dict()
    assert {key: line[key] for key in expected} == json.loads(json.dumps(expected))
    assert "1 of a student" in done.err


def test_a_message_of_another_conversation_is_not_the_student_s(prompt):
    rows = [
        {"conversation_id": 1, "role": "user", "text": "Fractions?"},
        {"conversation_id": 2, "role": "assistant", "text": "What about fractions?"},
    ]
    prompt.write(jsonl(*rows), "a.jsonl")
    done = prompt.run("score", "a.jsonl", "--format", "jsonl", "--profile", "socratic-v2")
    expected = score("What about fractions?", profile="socratic-v2")
    assert lines_of(done)[0]["uptake"] == expected["uptake"]


@pytest.mark.parametrize("name", ["Sam", "", "narrator"])
def test_a_speaker_who_is_not_known_is_an_error_of_that_row(prompt, name):
    rows = [{"role": name, "text": ASKS}, {"role": "tutor", "text": ASKS}]
    prompt.write(jsonl(*rows), "a.jsonl")
    done = prompt.run("score", "a.jsonl", "--format", "jsonl")
    assert [line["status"] for line in lines_of(done)] == ["error", "ok"]
    assert done.code == 1
    assert done.err.startswith(f'Error: a.jsonl line 1: `role` names "{name}", who is neither')


@pytest.mark.parametrize(
    "content",
    [
        f"Student: {TELLS}\nAnna: So?\nTutor: {ASKS}\n",
        f"A lesson\n\nStudent: {TELLS}\n\nTutor: {ASKS}\n",
        f"Student: {TELLS}\n\n{TELLS}\n\nTutor: {ASKS}\n",
    ],
)
def test_a_dialogue_that_does_not_name_every_speaker_is_refused(prompt, content):
    prompt.write(content, "a.txt")
    done = prompt.run("score", "a.txt")
    assert (done.code, done.out) == (2, "")
    assert "does not say who speaks" in done.err
    assert prompt.run("score", "a.txt", "--whole").code == 0


def test_a_file_of_students_alone_has_nothing_to_score(prompt):
    prompt.write(jsonl({"role": "user", "text": ASKS}), "a.jsonl")
    done = prompt.run("score", "a.jsonl")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "Error: a.jsonl has no answer of a tutor: 1 row is left out: 1 of a student\n"
    )


def chat(*messages):
    return [{"role": role, "content": content} for role, content in messages]


def choices(*contents, **more):
    return {"choices": [{"message": {"content": each}} for each in contents], **more}


USAGE = {"completion_tokens": 257, "completion_tokens_details": {"reasoning_tokens": 7}}


def row(output, **response):
    return {"promptIdx": 0, "testIdx": 0, "response": {"output": output, **response}}


def spent(completion, **details):
    return {"tokenUsage": {"completion": completion, "completionDetails": details}}


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"id": "a", "messages": chat(("user", "Hi"), ("assistant", ASKS))}, [("a", "ok", None)]),
        (
            {
                "id": 7,
                "messages": [
                    *chat(("user", "Hi"), ("assistant", ASKS), ("user", "So")),
                    {"role": "assistant", "content": None, "tool_calls": []},
                    {"role": "assistant", "content": TELLS, "weight": 0},
                    *chat(("assistant", ASKS), ("user", "Bye")),
                ],
            },
            [("7#1", "ok", None), ("7#2", "ok", None)],
        ),
        (
            {
                "id": "a",
                "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": ASKS}],
            },
            [("a", "ok", None)],
        ),
        ({"text": [ASKS, ASKS], "id": "a"}, [("a#1", "ok", None), ("a#2", "ok", None)]),
        ({"id": "a", "epoch": 2, "output": [ASKS]}, [("a", "ok", None)]),
        ({"content": [{"type": "text", "text": ASKS}]}, [(None, "ok", None)]),
        (choices(ASKS, usage=USAGE), [(None, "ok", 0.5)]),
        (choices(ASKS, ASKS, usage=USAGE, id="a"), [("a#1", "ok", None), ("a#2", "ok", None)]),
        (
            {
                "custom_id": "q",
                "response": {"status_code": 200, "body": choices(ASKS, usage=USAGE)},
            },
            [("q", "ok", 0.5)],
        ),
        (
            {"custom_id": "q", "response": None, "error": {"code": "expired"}},
            [("q", "error", None)],
        ),
        (
            {
                "output": [
                    {"type": "reasoning", "summary": []},
                    {"type": "message", "content": [{"type": "output_text", "text": ASKS}]},
                ],
                "usage": {"output_tokens": 300, "output_tokens_details": {"reasoning_tokens": 50}},
            },
            [(None, "ok", 0.5)],
        ),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": ASKS}],
                "usage": {"output_tokens": 300},
                "stop_reason": "end_turn",
            },
            [(None, "ok", None)],
        ),
        (
            {
                "candidates": [{"content": {"parts": [{"text": ASKS}]}, "finishReason": "STOP"}],
                "usageMetadata": {"candidatesTokenCount": 250, "thoughtsTokenCount": 900},
            },
            [(None, "ok", 0.5)],
        ),
        (
            {"output": {"message": {"role": "assistant", "content": [{"text": ASKS}]}}},
            [(None, "ok", None)],
        ),
        ({"text": ASKS, "error": "Error 400: too long"}, [(None, "error", None)]),
        ({"text": ASKS, "error": None}, [(None, "ok", None)]),
        ({"text": ASKS, "status": "error"}, [(None, "error", None)]),
        ({"text": ASKS, "finish_reason": "content_filter"}, [(None, "refused", None)]),
        ({"text": ASKS, "stop_reason": "refusal"}, [(None, "refused", None)]),
        ({"text": ASKS, "finish_reason": "length"}, [(None, "truncated", None)]),
        ({"text": ASKS, "finish_reason": "stop", "output_tokens": 250}, [(None, "ok", 0.5)]),
        ({"messages": [{"role": "assistant", "refusal": "No."}]}, [(None, "refused", None)]),
        (
            {"messages": [{"role": "assistant", "content": [{"text": "No.", "refusal": True}]}]},
            [(None, "refused", None)],
        ),
        (
            {
                "messages": chat(("user", "Hi"), ("assistant", "Too long.")),
                "error": {"message": "x"},
            },
            [(None, "error", None)],
        ),
        (
            {"messages": chat(("user", "Hi")), "response": choices(ASKS, usage=USAGE)},
            [(None, "ok", 0.5)],
        ),
        ({"response": ASKS, "reasoning": "Hm, 54?", "output_tokens": 300}, [(None, "ok", None)]),
        (row(ASKS, **spent(257, reasoning=7)), [("test 0", "ok", 0.5)]),
        (row(f"Thinking: Hm.\n\n{ASKS}", **spent(300)), [("test 0", "ok", None)]),
        (
            row(f"Thinking: It is.\n\nHm.\nSignature: abc\n\n{ASKS}"),
            [("test 0", "ok", None)],
        ),
        (row(f"Thinking: Hm.\n\nSo.\n\n{ASKS}"), [(None, "error", None)]),
        (row({"a": 1}), [(None, "error", None)]),
        ({**row("API error: 400"), "failureReason": 2}, [("test 0", "error", None)]),
        ({**row(ASKS), "failureReason": 1, "error": "an assertion"}, [("test 0", "ok", None)]),
        (row(ASKS, isRefusal=True), [("test 0", "refused", None)]),
        (row(ASKS, cached=True, **spent(0)), [("test 0", "ok", None)]),
    ],
)
def test_each_answer_of_a_record_is_scored_by_itself(prompt, record, found):
    prompt.write(jsonl(record), "a.jsonl")
    done = prompt.run("score", "a.jsonl", "--format", "jsonl")
    lines = lines_of(done)
    estimated = score(ASKS).verbosity
    expected = [
        (id_, status, (verbosity or estimated) if status == "ok" else None)
        for id_, status, verbosity in found
    ]
    shown = [(line.get("id"), line["status"], line["verbosity"]) for line in lines]
    assert shown == expected
    for line in lines:
        assert line["interrogative"] == (1.0 if line["status"] == "ok" else None)


def test_repeats_of_a_sample_keep_their_epochs(prompt):
    records = [{"id": "a", "epoch": epoch, "text": ASKS} for epoch in (1, 2)]
    prompt.write(jsonl(*records), "a.jsonl")
    done = prompt.run("score", "a.jsonl", "--format", "jsonl")
    assert [(line["id"], line["epoch"]) for line in lines_of(done)] == [("a", 1), ("a", 2)]


@pytest.mark.parametrize(
    "cell",
    [
        "Teacher: (focus)Why?|EOM|Sam: So.",
        "Student: So.\nTutor: Why?",
        "You said:\nSo.\nChatGPT said:\nWhy?",
        "{'choices': [{'message': 1}]}",
        '[{"role": "user", "content": "So."}]',
    ],
)
def test_a_cell_that_is_no_answer_is_not_scored(prompt, cell):
    prompt.write(jsonl({"text": ASKS}, {"text": cell}), "late.jsonl")
    late = prompt.run("score", "late.jsonl", "--format", "jsonl")
    assert [line["status"] for line in lines_of(late)] == ["ok", "error"]
    assert late.code == 1
    prompt.write(jsonl({"text": cell}, {"text": ASKS}), "first.jsonl")
    first = prompt.run("score", "first.jsonl")
    assert (first.code, first.out) == (2, "")
    assert len(first.err.splitlines()) == 1


def test_an_answer_that_goes_on_as_the_student_is_the_model_s(prompt):
    prompt.write(jsonl({"text": "Why?\nStudent: So.\nTutor: Well?"}), "a.jsonl")
    assert prompt.run("score", "a.jsonl").code == 0
