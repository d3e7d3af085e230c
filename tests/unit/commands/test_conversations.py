"""The turns before a response, from records and chats."""

import json

import pytest

from socratic_bench.scoring.exchange import EarlierTurn, Status
from socratic_cli.reading.conversations import (
    answer_key_of,
    earlier_turns_of,
    of_chat,
    student_message_of,
)


def said(*messages):
    return [{"role": role, "content": content} for role, content in messages]


def test_each_answer_of_the_assistant_is_scored_with_the_turns_before_it():
    chat = said(
        ("system", "Ask."),
        ("user", "Hi"),
        ("assistant", "Well?"),
        ("user", "So"),
        ("tool", "7"),
        ("user", "on"),
        ("assistant", [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Why?"}]),
        ("assistant", None),
        ("assistant", "Or how?"),
        ("user", "Bye"),
    )
    first, second = EarlierTurn("Hi", "Well?"), EarlierTurn("So\n\non", "Why?")
    assert of_chat(chat) == [
        {"text": "Well?", "student_message": "Hi", "earlier_turns": []},
        {"text": "Why?", "student_message": "So\n\non", "earlier_turns": [first]},
        {"text": "Or how?", "student_message": "", "earlier_turns": [first, second]},
    ]


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ("x", "`messages` must be a list"),
        ([], "needs an answer"),
        (said(("user", "Hi"), ("tool", "7"), ("assistant", None)), "needs an answer"),
        (said(("Sam", "7")), "`messages` 1: `role` names"),
        ([{"content": "Hi"}], "`messages` 1 needs a `role`"),
        (said(("user", 7)), "`messages` 1 needs a `content` of text"),
        ([7], "`messages` 1 must be an object"),
    ],
)
def test_a_chat_that_cannot_be_read_says_where(messages, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        of_chat(messages)


def test_the_fields_of_a_record_are_read():
    turn = {"student": "Hi", "tutor": "Well", "output_tokens": 3, "status": "ok"}
    record = {"student_message": "So?", "earlier_turns": [turn], "answer_key": ["0 N"]}
    assert answer_key_of(record) == ("0 N",)
    assert answer_key_of({}) == ()
    assert student_message_of(record) == "So?"
    assert earlier_turns_of(record) == (EarlierTurn("Hi", "Well", 3, Status.OK),)


@pytest.mark.parametrize(
    ("turns", "problem"),
    [
        ("x", "`earlier_turns` must be a list"),
        ([7], "`earlier_turns` 1 must be"),
        ([{"student": "Hi"}], "`earlier_turns` 1 needs `student` and `tutor`"),
        ([{"student": "", "tutor": "", "output_tokens": -1}], "`output_tokens` must be"),
        ([{"student": "", "tutor": "", "status": "fine"}], "fine"),
    ],
)
def test_earlier_turns_that_cannot_be_read_say_where(turns, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        earlier_turns_of({"earlier_turns": turns})


@pytest.mark.parametrize("key", ["0 N", {"a": 1}, [7]])
def test_an_answer_key_that_is_no_list_of_strings_says_so(key):
    with pytest.raises(TypeError, match="`answer_key` must be a list of strings"):
        answer_key_of({"answer_key": key})


def test_each_answer_of_a_chat_is_scored_with_its_key_and_the_states_before_it(prompt):
    chat = said(
        *(("user", "Hi"), ("assistant", "Net force: $0$ N. What does that tell you?")),
        *(("user", "So?"), ("assistant", "It is so.")),
        *(("user", "And?"), ("assistant", "What else?")),
    )
    prompt.write(json.dumps({"messages": chat, "answer_key": ["0 N"]}) + "\n", "a.jsonl")
    done = prompt.run("score", "a.jsonl", "--format", "jsonl", "--profile", "fidelity-1")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["kept"] for line in lines] == [0.0, 0.0, 0.0]
    first, _, last = (line["evidence"] for line in lines)
    assert first["facts"]["kept"]["sentence"] == "says the answer: lapsed"
    assert last["notes"] == [
        "turns 1 to 3: LLL (. kept, L lapsed, ? unknown), a break in turn 1",
    ]
