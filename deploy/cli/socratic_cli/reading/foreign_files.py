"""Recognises files that are no list of answers, and says how to get the answers out of them.

A database, a page or a whole dialogue would otherwise be scored line by line, without an error.
The content decides; a name only where the content says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from socratic_bench.errors import InvalidInput
from socratic_cli.reading.messages import SpeakerSide, side_of

_AS_LINES: Final = "give each answer as a JSON line with `text`, and `student_message` if known"


_BY_READER: Final = "give its name to `socratic-bench score` or `socratic-bench import`"


class ForeignKind(NamedTuple):
    """What a file is, and what to do."""

    what: str
    remedy: str = _AS_LINES
    reader: str = ""
    """The name of its reader in `reading.logs`; empty without one."""

    def __str__(self) -> str:
        return f"{self.what}, no list of answers: {_BY_READER if self.reader else self.remedy}"


_LLM: Final = ForeignKind("the database of llm", reader="llm-db")
_EXCEL: Final = ForeignKind("an Excel workbook", "save the sheet with the answers as CSV")
_INSPECT: Final = ForeignKind("a log of Inspect AI", reader="inspect-json")
_INSPECT_EVAL: Final = ForeignKind("a log of Inspect AI", reader="inspect-eval")
_PROMPTFOO: Final = ForeignKind("a result file of promptfoo", reader="promptfoo")
_IN_JSON: Final = "let promptfoo write it with `-o FILE.json`"
_PROMPTFOO_YAML: Final = ForeignKind("a result file of promptfoo in YAML", _IN_JSON)
_PROMPTFOO_CSV: Final = ForeignKind("a result file of promptfoo in CSV", _IN_JSON)

_BEGINNINGS: Final = (
    (b"PAR1", ForeignKind("a Parquet file", "write it as JSON Lines, for example with pandas")),
    (b"\x1f\x8b", ForeignKind("a gzip file", "unpack it first, for example with `gunzip`")),
    (b"\x28\xb5\x2f\xfd", ForeignKind("a Zstandard file", "unpack it first, with `unzstd`")),
    (b"BZh", ForeignKind("a bzip2 file", "unpack it first, with `bunzip2`")),
    (b"\xfd7zXZ", ForeignKind("an xz file", "unpack it first, with `unxz`")),
    (b"7z\xbc\xaf", ForeignKind("a 7z archive", "unpack it first")),
    (b"%PDF-", ForeignKind("a PDF file")),
    (b"{\\rtf", ForeignKind("an RTF file", "save it as plain text")),
    (b"\xd0\xcf\x11\xe0", ForeignKind("an old Office file", "save it as CSV or plain text")),
)
_OR_PROMPTFOO: Final = f"{_AS_LINES}; promptfoo writes them with `-o FILE.jsonl`"
_YAML_FILE: Final = ForeignKind("a YAML file", _OR_PROMPTFOO)
_XML_FILE: Final = ForeignKind("an XML file", _OR_PROMPTFOO)
_HTML_PAGE: Final = ForeignKind("an HTML page", _OR_PROMPTFOO)
_BY_NAME: Final = {
    ".yaml": _YAML_FILE,
    ".yml": _YAML_FILE,
    ".xml": _XML_FILE,
    ".html": _HTML_PAGE,
    ".htm": _HTML_PAGE,
    ".xhtml": _HTML_PAGE,
}


def refuse_binary(name: str, start: bytes) -> None:
    """Raise InvalidInput if a file that begins with `start` is no text."""
    if (kind := binary_kind(name, start)) is not None:
        raise _refusal(name, kind)


def binary_kind(name: str, start: bytes) -> ForeignKind | None:
    """Return what a file that begins with `start` is; None for a text."""
    for beginning, kind in _BEGINNINGS:
        if start.startswith(beginning):
            return kind
    if start.startswith(b"SQLite format 3"):
        llm = b"_llm_migrations" in start or PurePath(name).name == "logs.db"
        return _LLM if llm else ForeignKind("an SQLite database")
    if start.startswith(b"PK\x03\x04"):
        return _zip_kind(name, start)
    if b"\0" in start:
        return ForeignKind("a binary file", "save the answers as text in UTF-8")
    return None


def _zip_kind(name: str, start: bytes) -> ForeignKind:
    ending = PurePath(name).suffix.lower()
    if ending == ".eval" or b"_journal/" in start:
        return _INSPECT_EVAL
    if ending in {".xlsx", ".xlsm", ".ods"} or b"xl/" in start:
        return _EXCEL
    if ending in {".docx", ".odt"} or b"word/" in start:
        return ForeignKind("a text document", "save it as plain text, one answer per line")
    return ForeignKind("a zip archive", "unpack it first")


_PAGE: Final = re.compile(
    r"\s*<(?:!doctype\b|html\b|\?xml\b|head\b|body\b|svg\b|promptfoo\b)", re.IGNORECASE
)
_ELEMENT: Final = re.compile(r"\s*<(?P<tag>[A-Za-z][\w:-]*)(?:\s[^<>]*)?>[ \t]*\r?\n")
_THOUGHTS: Final = re.compile(
    r"think|thought|reason|details|answer|response|output|final|scratch", re.IGNORECASE
)
_TAGGED: Final = re.compile(r"^[ \t]*<dialogue>", re.IGNORECASE | re.MULTILINE)
_YAML: Final = re.compile(
    r"^evalId:|^results:\s*\n[ \t]+version:|^version:.*\nstatus:.*\neval:", re.MULTILINE
)
_COPIED: Final = re.compile(
    r"^[ \t#*]*(?P<who>You|[A-Z][\w .-]{1,20}) said:?[ \t*]*$", re.MULTILINE
)
_MARKED: Final = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|\*\*|__|>[ \t]*\**|[-*][ \t]+\**)(?P<who>[A-Za-z][\w. ]{0,20}?)"
    r"(?:[ \t]*\([^)\n]*\))?[ \t]*(?::?\*\*|:?__|:|$)",
    re.MULTILINE,
)
_PROMPT_AND_RESPONSE: Final = {
    "prompt": SpeakerSide.STUDENT,
    "response": SpeakerSide.TUTOR,
    "you": SpeakerSide.STUDENT,
}


def tagged_kind(start: str) -> ForeignKind | None:
    """Return what a text that begins with `start` is if it has a dialogue between tags."""
    if _TAGGED.search(start) is None:
        return None
    return ForeignKind("a dialogue with tags (`<dialogue>`)", reader="debugging")


def refuse_foreign_text(name: str, start: str) -> None:
    """Raise InvalidInput if a text that begins with `start` is no list of answers."""
    if _PAGE.match(start):
        raise _refusal(name, _XML_FILE if start.lstrip()[:5] == "<?xml" else _HTML_PAGE)
    if (tagged := tagged_kind(start)) is not None:
        raise _refusal(name, tagged)
    if (kind := _BY_NAME.get(PurePath(name).suffix.lower())) is not None:
        raise _refusal(name, kind)
    element = _ELEMENT.match(start)
    if (
        element is not None
        and not _THOUGHTS.search(element["tag"])
        and start.rstrip().endswith(f"</{element['tag']}>")
    ):
        raise _refusal(name, _XML_FILE)
    if _YAML.search(start):
        raise _refusal(name, _PROMPTFOO_YAML)
    if "|EOM|" in start:
        raise _refusal(name, ForeignKind("a file of whole dialogues (turns parted by `|EOM|`)"))
    if _is_copied(start):
        raise _refusal(name, ForeignKind("a chat copied from a page (`You said:`)"))
    if _is_markdown_chat(start):
        raise _refusal(
            name, ForeignKind("a chat in Markdown", f"{_AS_LINES}; llm: `llm logs --json`")
        )


def _is_copied(text: str) -> bool:
    who = {said["who"] == "You" for said in _COPIED.finditer(text)}
    return len(who) == 2


def _is_markdown_chat(text: str) -> bool:
    """Whether headings or bold words name both sides."""
    sides = set()
    for marked in _MARKED.finditer(text):
        word = marked["who"].strip().casefold()
        sides.add(_PROMPT_AND_RESPONSE.get(word) or side_of(word))
    return SpeakerSide.STUDENT in sides and SpeakerSide.TUTOR in sides


_TURN: Final = re.compile(
    r"^[ \t\u00a0]*(?P<who>[A-Za-z][\w.]{0,15}(?: [\w.]{1,15})?)[ \t]*:", re.MULTILINE
)


_AS_DATA: Final = re.compile(r"\[?\{'|\[?\{\s*\"(?:role|choices|messages|from)\"\s*:")


def no_answer(text: str) -> str | None:
    """Return what `text` is if it is no answer: the turns of both sides, or an object's notation.

    Such a dialogue begins with a speaker. An answer that only goes on with the student's turn is a
    model's.
    """
    if text[:1] in ("{", "[") and _AS_DATA.match(text):
        return "an object of an API or of Python"
    if "|EOM|" in text:
        return "a whole dialogue (turns parted by `|EOM|`)"
    if "\n" not in text:
        return None
    if " said:" in text and _is_copied(text):
        return "a chat copied from a page (`You said:`)"
    begins = _TURN.match(text.lstrip())
    if begins is None or side_of(begins["who"]) is None:
        return None
    sides = {side_of(turn["who"]) for turn in _TURN.finditer(text)}
    both = SpeakerSide.STUDENT in sides and SpeakerSide.TUTOR in sides
    return "a whole dialogue (lines of both sides)" if both else None


_MRBENCH: Final = ForeignKind("a set of dialogues with several answers each", reader="mrbench")
_OPEN_WEBUI: Final = ForeignKind("a chat export of Open WebUI, a tree of messages", reader="webui")
_MATHDIAL: Final = ForeignKind("a set of whole dialogues (`conversation`)", reader="mathdial")

_SHAPES: Final = (
    ({"mapping"}, ForeignKind("a chat export of ChatGPT, a tree of messages", reader="chatgpt")),
    ({"chat_messages"}, ForeignKind("a chat export of Claude", reader="claude")),
    ({"messagesTree"}, ForeignKind("a chat export of LibreChat", reader="librechat")),
    ({"conversationId", "messages"}, ForeignKind("a chat export of LibreChat", reader="librechat")),
    ({"history", "version"}, ForeignKind("a chat export of chatbot-ui", reader="chatbot-ui")),
    ({"Turn", "Speaker", "Sentence"}, ForeignKind("a lesson of TalkMoves", reader="talkmoves")),
    ({"anno_llm_responses"}, _MRBENCH),
    ({"tutor_responses"}, _MRBENCH),
    ({"prepDataset"}, ForeignKind("a set of exercises with several answers each", reader="cima")),
    ({"c_h", "c_r"}, ForeignKind("a set of moments with lists of messages", reader="bridge")),
    ({"interactions", "metadata"}, ForeignKind("a file of whole dialogues", reader="interactions")),
    ({"dialog_history"}, ForeignKind("a set of whole dialogues", reader="mathtutorbench")),
    ({"steps", "dialogues"}, ForeignKind("a set of whole dialogues", reader="socrateach")),
    ({"chosen", "rejected"}, ForeignKind("a set of pairs of dialogues", reader="hh-rlhf")),
    ({"prompt", "message_tree_id"}, ForeignKind("a set of trees of messages", reader="oasst")),
    ({"eval", "samples"}, _INSPECT),
    ({"evalId", "results"}, _PROMPTFOO),
    ({"Named Scores", "Grader Reason"}, _PROMPTFOO_CSV),
    ({"doc_id", "resps"}, ForeignKind("samples of lm-evaluation-harness", reader="lm-eval")),
    ({"testCases"}, ForeignKind("a test run of DeepEval")),
    ({"cases", "failures"}, ForeignKind("a report of Pydantic Evals")),
    ({"info", "data"}, ForeignKind("a trace of MLflow")),
)
_SHAPE_KEYS: Final = frozenset(key for keys, _ in _SHAPES for key in keys)


def foreign_record(record: Mapping[str, Any]) -> ForeignKind | None:
    """Return what `record` is, and what to do, if its keys are those of a foreign file."""
    if not _SHAPE_KEYS.isdisjoint(record) or "chat" in record or "conversation" in record:
        for keys, kind in _SHAPES:
            # A column of promptfoo's CSV has the name of a variable of the prompt.
            if keys <= record.keys() and ("text" not in record or kind is _PROMPTFOO_CSV):
                return kind
        chat = record.get("chat")
        if isinstance(chat, Mapping) and ("history" in chat or "messages" in chat):
            return _OPEN_WEBUI
        if isinstance(record.get("conversation"), str) and "text" not in record:
            return _MATHDIAL
    return None


def refuse_foreign_record(name: str, record: object) -> None:
    """Raise InvalidInput if the first record of a file is a foreign file's, or no answer."""
    if not isinstance(record, Mapping):
        return
    if (problem := foreign_record(record)) is not None:
        raise InvalidInput(f"{name} is {problem}")
    for key in ("text", "response", "output", "content"):
        said = record.get(key)
        if isinstance(said, str) and (what := no_answer(said)) is not None:
            raise InvalidInput(f"{name} is a list in which `{key}` is {what}: {_AS_LINES}")


def _refusal(name: str, kind: ForeignKind) -> InvalidInput:
    return InvalidInput(f"{name} is {kind}")
