"""`score` refuses a file that is no list of answers, in one sentence that says what it is."""

import gzip
import io
import json
import sqlite3
import zipfile

import pytest


def database(*tables):
    with sqlite3.connect(":memory:") as opened:
        for table in tables:
            opened.execute(f"create table {table} (response text)")
        return opened.serialize()


def archive(*members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        for member in members:
            # Without a time of its own: each process of a test run collects the same ids.
            opened.writestr(zipfile.ZipInfo(member), "Why?")
    return file.getvalue()


CHATGPT = [{"title": "So", "mapping": {"r": {"message": None}}, "current_node": "r"}]
CLAUDE = [{"uuid": "1", "chat_messages": [{"sender": "human", "text": "Hi"}]}]
OPEN_WEBUI = [{"id": "1", "chat": {"history": {"messages": {}}, "currentId": "1"}}]
LIBRECHAT = {"conversationId": "1", "messagesTree": [{"isCreatedByUser": True, "text": "Hi"}]}
INSPECT = {"version": 2, "status": "success", "eval": {}, "samples": []}
PROMPTFOO = {"evalId": "e", "results": {"version": 3}, "config": {}}
TREE = {"message_tree_id": "1", "prompt": {"text": "Hi", "replies": []}}

COPIED = "You said:\nIs 7 times 8 54?\nChatGPT said:\nHow could you check?\n"
HEADINGS = "# Fractions\n\n## User\n\nIs it 3?\n\n## Assistant\n\nHow could you check?\n"
BOLD = "**Student:** Is it 3?\n\n**Tutor:** How could you check?\n"
LLM = "# 2026-11-02T10:00:00\n\n## Prompt\n\nIs it 3?\n\n## Response\n\nWhy?\n"
TABLE = "q,[openai:m] {{q}},Status,Score,Named Scores,Grader Reason,Comment\nSo?,Why?,PASS,1,,,\n"
YAML = "evalId: e\nresults:\n  version: 3\n  results:\n    - response:\n        output: Why?\n"


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("logs.db", database("_llm_migrations", "responses"), "the database of llm"),
        ("a.txt", database("answers"), "an SQLite database"),
        ("a", b"PAR1\x15\x04Why?\nPAR1", "a Parquet file"),
        ("a.xlsx", archive("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook"),
        ("a.docx", archive("word/document.xml"), "a text document"),
        ("a.eval", archive("_journal/start.json"), "a log of Inspect AI"),
        ("a.zip", archive("a.txt"), "a zip archive"),
        ("a.txt", gzip.compress(b"Why?\n", mtime=0), "a gzip file"),
        ("a.txt", b"Why?\nSo\0?\n", "a binary file"),
        ("a.txt", "Why?\n".encode("utf-16-le"), "a binary file"),
        ("a.csv", "text\nWhy?\n".encode("utf-32"), "a binary file"),
        ("a.pdf", b"%PDF-1.7\nWhy?\n", "a PDF file"),
        ("a.txt", b"\n<!DOCTYPE html>\n<p>Why?</p>\n", "an HTML page"),
        ("a.txt", b"<html><body>Why?</body></html>", "an HTML page"),
        ("a.txt", b'<?xml version="1.0"?>\n<r>\n</r>\n', "an XML file"),
        ("a.txt", b"<results>\n <output>Why?</output>\n</results>\n", "an XML file"),
        ("a.html", b"Why?\n", "an HTML page"),
        ("a.yaml", b"- Why?\n", "a YAML file"),
        ("a.txt", YAML, "a result file of promptfoo"),
        ("a.csv", TABLE, "a result file of promptfoo in CSV"),
        ("a.csv", f"text,{TABLE[2:]}", "a result file of promptfoo in CSV"),
        ("a.txt", b"Teacher: (focus)Why?|EOM|Sam: So.\n", "a file of whole dialogues"),
        ("a.txt", COPIED, "a chat copied from a page"),
        ("a.md", HEADINGS, "a chat in Markdown"),
        ("a.md", BOLD, "a chat in Markdown"),
        ("a.txt", LLM, "a chat in Markdown"),
        ("conversations.json", json.dumps(CHATGPT), "a chat export of ChatGPT"),
        ("a.txt", json.dumps(CHATGPT, indent=2), "a chat export of ChatGPT"),
        ("conversations.json", json.dumps(CLAUDE), "a chat export of Claude"),
        ("a.json", json.dumps(OPEN_WEBUI), "a chat export of Open WebUI"),
        ("a.json", json.dumps(LIBRECHAT, indent=2), "a chat export of LibreChat"),
        ("a.json", json.dumps(INSPECT, indent=2), "a log of Inspect AI"),
        ("a.json", json.dumps(PROMPTFOO), "a result file of promptfoo"),
        ("a.jsonl", json.dumps(TREE), "a set of trees of messages"),
        ("a.json", "[\n {\n", "a.json: not valid JSON"),
        ("a.txt", "{\n" + ' "so": 1,\n' * 2_000, "a.txt: not valid JSON"),
    ],
)
def test_a_foreign_file_is_one_sentence_and_nothing_is_scored(prompt, name, content, what):
    path = prompt.folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = prompt.run("score", name)
    assert (done.code, done.out) == (2, "")
    assert what in done.err
    assert done.err.startswith(f"Error: {name}")
    assert len(done.err.splitlines()) == 1


def test_a_binary_file_is_no_single_answer_either(prompt):
    (prompt.folder / "a").write_bytes(b"Why?\nSo\0?\n")
    assert prompt.run("score", "a", "--whole").code == 2


@pytest.mark.parametrize(
    "line",
    [
        "<think>\nSo.\n</think>\nWhy?",
        "<p>Why?</p>",
        "What does <b> do in <html>?",
        "**Hint:** Why?",
        "# Why?",
        "Why? You said: it is 3.",
        "Results: what could you draw?",
        "- Student: has to think. Why?",
        "Student: is that what you are? Why?",
    ],
)
def test_an_answer_that_looks_a_little_like_one_is_scored(prompt, line):
    prompt.write(f"What is it?\n{line}\n", "a.txt")
    done = prompt.run("score", "a.txt", "--format", "jsonl")
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) == 1 + len(line.splitlines())


@pytest.mark.parametrize("coding", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "Why, Zoë?\r\nSo.\r\n"),
        ("a.txt", "Why, Zoë?\rSo.\r"),
        ("a.jsonl", '{"text": "Why, Zoë?"}\n{"text": "So."}\n'),
        ("a.json", '[{"text": "Why, Zoë?"},\n {"text": "So."}]'),
        ("a.json", '["Why, Zoë?", "So."]'),
        ("a.json", '{\n"text": "Why, Zoë?"\n}\n{\n"text": "So."\n}\n'),
        ("a.csv", 'id,text\r1,"Why, Zoë?"\r2,So.\r'),
        ("a.csv", "id;text\n1;Why, Zoë?\n2;So.\n"),
        ("a.tsv", "id\ttext\n1\tWhy, Zoë?\n2\tSo.\n"),
        ("a.txt", 'id,text\n1,"Why, Zoë?"\n2,So.\n'),
        ("a.csv", "id,content\n1,Why Zoë?\n2,So.\n"),
    ],
)
def test_an_answer_is_read_whatever_parts_it_from_the_next(prompt, coding, name, content):
    (prompt.folder / name).write_bytes(content.encode(coding))
    done = prompt.run("score", name, "--format", "jsonl")
    assert (done.code, done.err) == (0, "")
    figures = [json.loads(line)["interrogative"] for line in done.out.splitlines()]
    assert figures == [1.0, 0.0]
