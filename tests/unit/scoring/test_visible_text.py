"""What a student sees of a provider's text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.scoring.visible_text import VisibleText, joined, read

ASKS = "What might you consider first?"

APART = {
    "thoughts first": (
        f"<think>never, the answer is 7</think>\n\n{ASKS}",
        "never, the answer is 7",
    ),
    "two thoughts": (f"<think>a</think><think>b</think>{ASKS}", "a\n\nb"),
    "a thought within a thought": (
        f"<think>a<think>b</think>c</think>{ASKS}",
        "a<think>b</think>c",
    ),
    "no thought": (f"<think>\n\n</think>\n\n{ASKS}", ""),
    "thoughts whose beginning the template wrote": (f"So: never.</think>\n\n{ASKS}", "So: never."),
    "another tag": (f"[THINK]never[/THINK]{ASKS}", "never"),
    "an attribute": (f'<THINKING budget="1">never</THINKING>\n{ASKS}', "never"),
    "thoughts of Kimi": (f"◁think▷never◁/think▷{ASKS}", "never"),
    "thoughts of Cohere": (
        f"<|START_THINKING|>never<|END_THINKING|><|START_RESPONSE|>{ASKS}<|END_RESPONSE|>",
        "never",
    ),
    "channels": (
        (
            "<|channel|>analysis<|message|>never<|end|>"
            f"<|start|>assistant<|channel|>final<|message|>{ASKS}<|return|>"
        ),
        "never",
    ),
    "details of a chat program": (
        (
            '<details type="reasoning" done="true" duration="3">\n'
            f"<summary>Thought for 3 seconds</summary>\n> never\n</details>\n{ASKS}"
        ),
        "> never",
    ),
    "a tool's details": (f'<details type="tool_calls" done="true">x</details>{ASKS}', ""),
    "a wrapped answer": (f"<think>never</think>\n<answer>\n{ASKS}\n</answer>", "never"),
}

CUT = {
    "ChatML": f"{ASKS}<|im_end|>",
    "Llama 3": f"{ASKS}<|eot_id|>\n",
    "twice": f"{ASKS} </s> </s>",
    "Gemma": f"{ASKS}<end_of_turn>\n",
    "DeepSeek": f"{ASKS}<\uff5cend\u2581of\u2581sentence\uff5c>",
    "both ends": f"<|im_start|>assistant\n{ASKS}<|im_end|>",
    "nothing else": f"{ASKS}\n[/INST]",
}

SHOWN = (
    "In XML you may write `<think>` and `</think>`. What else?",
    'The tag "<think>" opens what </think> closes, yes?',
    "```\n<think>\nhello\n</think>\n```\nWhat does it do?",
    "Which of `</s>` and `<s>` comes last: `</s>`",
    "Is 3 <think of a number> a tag?",
    "<details><summary>Hint</summary>Look again</details>\nWhat do you see?",
    "If x < y, as in [1], what is <|x|>?",
)


@pytest.mark.parametrize("case", APART)
def test_thoughts_are_kept_apart_from_the_answer(case: str):
    raw, thoughts = APART[case]
    seen = read(raw)
    assert (seen.text, seen.reasoning) == (ASKS, thoughts)


@pytest.mark.parametrize("raw", ["<think>So what?", "<think>\nWhat might", "<|im_end|>", "</s>"])
def test_thoughts_without_an_end_and_tokens_alone_are_no_answer(raw: str):
    assert read(raw).text == ""


@pytest.mark.parametrize("case", CUT)
def test_control_tokens_are_cut_from_the_ends(case: str):
    assert read(CUT[case]) == VisibleText(ASKS, end_tokens=True)


@pytest.mark.parametrize(
    "turn", ["<|im_end|>\n<|im_start|>user\nOh, 7?", "<|eot_id|>user\n\nOh, 7?", "<|user|>\nOh, 7?"]
)
def test_a_turn_of_the_student_after_a_control_token_is_cut_off_and_told(turn: str):
    assert read(ASKS + turn) == VisibleText(ASKS, end_tokens=True, student_turn=True)


@pytest.mark.parametrize(
    "mark", ["\ue200cite\ue202turn0search1\ue202turn0search2\ue201", "\u30104:0\u2020source\u3011"]
)
def test_citation_marks_are_taken_out(mark: str):
    assert read(ASKS + mark) == VisibleText(ASKS, citations=True)


@pytest.mark.parametrize("text", SHOWN)
def test_a_tag_that_the_tutor_shows_as_an_example_stays(text: str):
    assert read(text) == VisibleText(text)


PIECES = ("<think>", "</think>", "<|im_end|>", "</s>", "\n", "`", "```\n", "a?", " ", "<details ")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_is_seen_is_read_the_same_once_more(raw: str):
    seen = read(raw).text
    assert read(seen).text in seen
    assert len(seen) <= len(raw)


@given(st.text(st.characters(exclude_characters="<[\u25c1\ue200\ue201\ue202\u3010")))
def test_a_text_without_marks_is_seen_as_it_is(text: str):
    assert read(text) == VisibleText(text)


JOINED = {
    ("What", " might", " you?"): "What might you?",
    ("What", "What might", "What might you?"): "What might you?",
    ("What", "What might", "What might you?", "What might you?"): "What might you?",
    ("What might ", "you do?", "What might you do?"): "What might you do?",
    ("What might", "What might you do?"): "What might you do?",
    ("", "What might", "", "What might you do?", ""): "What might you do?",
    ("ha", "ha"): "haha",
    ("1", "10"): "110",
    ("\n", "\n\n", "Yes"): "\n\n\nYes",
    ("So, ", "so, ", "so?"): "So, so, so?",
    (): "",
}


@pytest.mark.parametrize("pieces", JOINED)
def test_a_stream_that_repeats_its_text_is_read_once(pieces: tuple[str, ...]):
    assert joined(pieces) == JOINED[pieces]
