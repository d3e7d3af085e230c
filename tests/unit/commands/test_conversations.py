"""The turns before a response, from records and chats."""

import pytest

from socratic_bench.scoring.exchange import EarlierTurn
from socratic_bench.scoring.statuses import Status
from socratic_cli.conversations import earlier_turns_of, of_chat, student_message_of
from socratic_cli.transcripts import scored_lines


def said(*messages):
    return [{"role": role, "content": content} for role, content in messages]


def test_the_last_message_of_the_assistant_is_scored_and_the_others_come_before_it():
    chat = said(
        ("system", "Ask."),
        ("user", "Hi"),
        ("assistant", "Well?"),
        ("user", "So"),
        ("user", "on"),
        ("assistant", [{"type": "text", "text": "Why?"}]),
    )
    assert of_chat(chat) == {
        "text": "Why?",
        "student_message": "So\n\non",
        "earlier_turns": [EarlierTurn("Hi", "Well?")],
    }


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ("x", "`messages` must be a list"),
        ([], "must end with a message of role assistant"),
        (said(("user", "Hi")), "must end with a message of role assistant"),
        (said(("tool", "7")), "`messages` 1 needs a `role` of user, assistant"),
        (said(("user", 7)), "`messages` 1 needs a `content` of text"),
        ([7], "`messages` 1 needs a `role`"),
    ],
)
def test_a_chat_that_cannot_be_read_says_where(messages, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        of_chat(messages)


def test_the_fields_of_a_record_are_read():
    turn = {"student": "Hi", "tutor": "Well", "output_tokens": 3, "status": "ok"}
    record = {"student_message": "So?", "earlier_turns": [turn]}
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


def test_a_chat_is_scored_by_its_last_reply_and_a_bad_one_loses_no_other():
    lines = [
        b'{"id": 1, "messages": [{"role": "user", "content": "Hi"}]}\n',
        b'{"id": 2, "messages": [{"role": "assistant", "content": "Why?"}]}\n',
    ]
    bad, good = scored_lines(lines, name="chats.jsonl", whole=False, profile="socratic-v1")
    assert "line 1" in bad.problem
    assert (good.text, good.figures["interrogative"]) == ("Why?", 1.0)
