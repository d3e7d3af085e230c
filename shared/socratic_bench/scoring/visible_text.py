"""What a student sees of a provider's text: the answer, apart from thoughts and wire marks.

Servers without a reasoning parser send thoughts within the answer; chat templates leave their
control tokens in it; chat programs wrap thoughts in `<details>` and citations in private-use
characters. `read` is the one place that takes them out. A tag inside a code span, a code block or
quotation marks is an example that the tutor shows: it stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Final, NamedTuple


class VisibleText(NamedTuple):
    """A provider's text in its parts."""

    text: str
    """What a student sees; the provider's text itself where nothing was taken out."""

    reasoning: str = ""
    """The thoughts, one after the other."""

    end_tokens: bool = False
    """Whether control tokens of a chat template were cut off."""

    student_turn: bool = False
    """Whether the model went on with a turn of its student, which was cut off with its token."""

    citations: bool = False
    """Whether citation marks were taken out."""


_THOUGHT_NAMES: Final = (
    r"think(?:ing)?|thoughts?|reasoning|seed:think|mm:think|internal_thoughts?|scratchpad|"
    r"inner_monologue"
)
_OPEN: Final = (
    rf"<(?:{_THOUGHT_NAMES})(?:\s[^<>]*)?>"
    r"|\[THINK\]|◁think▷|<\|START_THINKING\|>|<\|begin_of_thought\|>"
)
_CLOSE: Final = (
    rf"</(?:{_THOUGHT_NAMES})\s*>"
    r"|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>"
)
_TAG: Final = re.compile(rf"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.IGNORECASE)

_DETAILS: Final = re.compile(
    r"<details\b[^<>]*\btype\s*=\s*[\"']?(?P<kind>reasoning|tool_calls|code_interpreter)\b[^<>]*>"
    r"(?P<body>.*?)(?:</details\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_SUMMARY: Final = re.compile(r"\s*<summary\b[^<>]*>.*?</summary\s*>", re.IGNORECASE | re.DOTALL)

_HARMONY: Final = re.compile(
    r"(?:<\|start\|>\s*assistant)?\s*<\|channel\|>\s*(?P<channel>\w+)[^<]*<\|message\|>"
    r"(?P<body>.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)(?:<\|(?:end|return|call)\|>)?",
    re.DOTALL,
)

_END: Final = (
    r"<\|(?:im_end|eot_id|eom_id|eot|eos|end_of_text|endoftext|end_of_turn|end_of_sentence|end|"
    r"return|END_OF_TURN_TOKEN|END_RESPONSE|endofturn|message_end|end_of_solution|"
    r"end_of_document|eod_id|eod|step_end|im_sep|fim_pad)\|>"
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>|</s>|<end_of_turn>|<eos>|<turn\|>|\[EOS\]|\[/INST\]"
    r"|<\|\[end\]\|>|\[e~\[|<\|end_of_role\|>"
)
_ROLE: Final = (
    r"<\|im_start\|>|<\|start_header_id\|>|<\|start\|>|<start_of_turn>|<\|turn>"
    r"|<\|(?:user|human|system|tool|observation)\|>|<\uff5cUser\uff5c>|<\|START_OF_TURN_TOKEN\|>"
    r"|<\|(?:user|human)_?(?:start|begin|role)?\|>|\[INST\]|<\|start_of_role\|>"
)
_ENDS: Final = re.compile(rf"(?:{_END}|{_ROLE})\Z")
_LONGEST_END: Final = 40
"""Characters of the longest control token, at least."""

_GOES_ON: Final = re.compile(rf"(?:{_END})\s*(?:{_ROLE}|(?:user|human)\s*\n)|(?:{_ROLE})")

_BEGINS: Final = re.compile(
    r"\s*(?:<s>|<bos>|<\|begin_of_text\|>|<\|startoftext\|>|<\uff5cbegin\u2581of\u2581sentence\uff5c>"
    r"|<\|im_start\|>\s*(?:assistant|model)?\s*\n?|<start_of_turn>\s*model\s*\n?"
    r"|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>|<\|assistant\|>"
    r"|<\uff5cAssistant\uff5c>|\[/INST\]|<\|begin_of_solution\|>|<\|START_RESPONSE\|>|<\|START_TEXT\|>)"
)

_CITATION: Final = re.compile(
    "[ \u00a0]?(?:\ue200[^\ue200\ue201\n]{0,400}\ue201"
    "|\u3010[^\u3010\u3011\u2020\n]{0,200}\u2020[^\u3010\u3011\n]{0,200}\u3011)"
    "|[\ue200-\ue206]"
)
"""`cite…` between private-use characters, and `【4:0†source】`."""

_QUOTES: Final = frozenset("`\"'\u2018\u201c\u00ab\u201e(\\")
_FENCE: Final = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_TRIGGERS: Final = ("<", "[", "\u25c1", "\ue200", "\ue201", "\u3010")
_THOUGHT_WORDS: Final = ("think", "thought", "reasoning", "scratchpad", "monologue")
_CONTROL: Final = (
    "<|",
    "|>",
    "<\uff5c",
    "</s>",
    "<s>",
    "_turn>",
    "eos>",
    "bos>",
    "INST]",
    "[EOS]",
    "[e~",
)
MOST_TAGS: Final = 1000
"""The most tags of one kind that are looked at: the time stays linear in the text."""

_WRAPPED: Final = re.compile(
    r"<(?P<tag>answer|final_answer|response|output|final)>(?P<body>.*)</(?P=tag)>\Z",
    re.IGNORECASE | re.DOTALL,
)


def read(text: str) -> VisibleText:
    """Return the parts of a provider's text."""
    if not any(trigger in text for trigger in _TRIGGERS):
        return VisibleText(text)
    visible, reasoning = text, list[str]()
    controls = any(control in text for control in _CONTROL)
    begun = ended = student = False
    if controls:
        visible = _without_harmony(visible, reasoning)
        visible, begun = _without_beginning(visible)
    visible = _without_details(visible, reasoning)
    visible = _without_thoughts(visible, reasoning)
    if controls:
        visible, ended, student = _without_ending(visible)
        visible, again = _without_beginning(visible)
        begun = begun or again
    if wrapped := _WRAPPED.match(visible):
        visible, ended = wrapped["body"].strip(), True
    cited = _without_citations(visible)
    thoughts = "\n\n".join(filter(None, reasoning))
    return VisibleText(cited, thoughts, begun or ended, student, cited != visible)


def joined(pieces: Sequence[str]) -> str:
    """Return the text of a stream's pieces.

    Some servers send all text so far in each piece, or the whole text once more at the end: then
    the last piece is the text.
    """
    pieces = [piece for piece in pieces if piece]
    if len(pieces) < 2:
        return "".join(pieces)
    last = pieces[-1]
    if _is_cumulative(pieces):
        return last
    before = "".join(pieces[:-1])
    repeats = last.strip() == before.strip() and len(last.split()) > 1
    return before if repeats else before + last


def _is_cumulative(pieces: Sequence[str]) -> bool:
    pairs = list(pairwise(pieces))
    grow = all(later.startswith(earlier) for earlier, later in pairs)
    strict = all(len(later) > len(earlier) for earlier, later in pairs[:-1])
    if not grow or not strict:
        return False
    if len(pieces) == 2:
        return len(pieces[0].split()) > 1
    return len(pieces[-1]) > len(pieces[0])


def _without_harmony(text: str, reasoning: list[str]) -> str:
    """Take the channels of the harmony format apart: `final` is the answer."""
    if "<|channel|>" not in text or "<|message|>" not in text:
        return text
    answers: list[str] = []
    for message in _HARMONY.finditer(text):
        (answers if message["channel"] == "final" else reasoning).append(message["body"].strip())
    before = text[: first.start()] if (first := _HARMONY.search(text)) else text
    return "\n\n".join(filter(None, [before.strip(), *answers]))


def _without_beginning(text: str) -> tuple[str, bool]:
    at = 0
    while match := _BEGINS.match(text, at):
        at = match.end()
    return (text[at:].lstrip(), True) if at else (text, False)


def _without_details(text: str, reasoning: list[str]) -> str:
    if "<details" not in text.lower():
        return text
    fences = _code(text)

    def take(match: re.Match[str]) -> str:
        if _is_quoted(text, match.start(), fences):
            return match[0]
        if match["kind"].lower() == "reasoning":
            reasoning.append(_SUMMARY.sub("", match["body"]).strip())
        return ""

    taken = _DETAILS.sub(take, text, count=MOST_TAGS)
    return taken if taken == text else taken.strip()


def _without_thoughts(text: str, reasoning: list[str]) -> str:
    """Take out blocks of thoughts, nested ones with the outer one."""
    low = text.lower()
    if not any(word in low for word in _THOUGHT_WORDS) or _TAG.search(text) is None:
        return text
    kept: list[str] = []
    at = 0
    for block in _thoughts(text):
        kept.append(text[at : block.begins])
        reasoning.append(text[block.inside].strip())
        at = block.ends
    kept.append(text[at:])
    return "".join(kept).strip() if at else text


class _Block(NamedTuple):
    """A block of thoughts."""

    begins: int
    inside: slice
    ends: int


def _thoughts(text: str) -> Iterator[_Block]:
    """Yield the blocks of thoughts in order.

    An opening tag counts at the beginning of a line. A block without an end takes the rest; a
    closing tag without a beginning, which a chat template wrote, takes all before it.
    """
    fences = _code(text)
    open_tags: list[re.Match[str]] = []
    for number, tag in enumerate(islice(_TAG.finditer(text), MOST_TAGS)):
        if open_tags and tag["open"] is None:
            first = open_tags[0]
            if len(open_tags) == 1:
                yield _Block(first.start(), slice(first.end(), tag.start()), tag.end())
            open_tags.pop()
        elif open_tags:
            open_tags.append(tag)
        elif _is_quoted(text, tag.start(), fences):
            continue
        elif tag["open"] is None and number == 0:
            yield _Block(0, slice(0, tag.start()), tag.end())
        elif tag["open"] is not None and _begins_line(text, tag.start()):
            open_tags.append(tag)
    if open_tags:
        yield _Block(open_tags[0].start(), slice(open_tags[0].end(), None), len(text))


def _without_ending(text: str) -> tuple[str, bool, bool]:
    """Cut control tokens from the end, and what follows where the model began another turn."""
    fences = _code(text)
    ended = student = False
    for match in islice(_GOES_ON.finditer(text), MOST_TAGS):
        if not _is_quoted(text, match.start(), fences):
            student = bool(re.search(r"\w", text[match.end() :]))
            text, ended = text[: match.start()], True
            break
    end = len(text.rstrip())
    while (at := _end_token(text, end)) >= 0:
        end = at
        while end and text[end - 1].isspace():
            end -= 1
    if end < len(text.rstrip()) and not _is_quoted(text, end, fences):
        text, ended = text[:end], True
    return (text.rstrip(), True, student) if ended else (text, False, False)


def _end_token(text: str, end: int) -> int:
    """Return where the control token before `end` begins; -1 without one."""
    tail = max(0, end - _LONGEST_END)
    match = _ENDS.search(text[tail:end])
    return tail + match.start() if match else -1


def _without_citations(text: str) -> str:
    marked = "\u3010" in text or any(mark in text for mark in "\ue200\ue201\ue202")
    return _CITATION.sub("", text) if marked else text


def _code(text: str) -> list[int]:
    """Return the places of code fences, in order."""
    return [fence.start() for fence in _FENCE.finditer(text)]


def _is_quoted(text: str, at: int, fences: Sequence[int]) -> bool:
    """Whether the tag at `at` is an example: within code or quotation marks."""
    while at < len(text) and text[at].isspace():
        at += 1
    if at and text[at - 1] in _QUOTES:
        return True
    before = sum(fence < at for fence in fences)
    if before % 2:
        return True
    line = text.rfind("\n", 0, at) + 1
    return text.count("`", line, at) % 2 == 1


def _begins_line(text: str, at: int) -> bool:
    line = text.rfind("\n", 0, at) + 1
    before = text[line:at].strip()
    return not before or _TAG.search(before) is not None
