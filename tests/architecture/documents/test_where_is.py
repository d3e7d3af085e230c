"""The table "Where is …?" in docs/architecture.md: each file exists and defines the listed name."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECTION = "\n## Where is …?\n"
ROW = re.compile(r"^\| (?P<question>[^|]*)\| `(?P<path>[^`|]+)` \| (?P<names>[^|]+) \|$")


def rows() -> list[tuple[str, str, str]]:
    """Question, path and name of every row, a row with several names given several times."""
    section = (ROOT / "docs" / "architecture.md").read_text().split(SECTION)[1].split("\n## ")[0]
    found = []
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| question"):
            row = ROW.match(line)
            assert row, f"this row has another form than the others: {line}"
            names = re.findall(r"`([^`]+)`", row["names"])
            assert names, f"this row names nothing: {line}"
            found += [(row["question"].strip(), row["path"], name) for name in names]
    return found


def defined_in(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """The functions, classes, methods and constants that a module defines."""
    names: set[str] = set()
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=inner):
                names |= {prefix + name} | defined_in(inner, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(prefix + name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(prefix + name)
    return names


def exported_by(source: str) -> set[str]:
    """The names that a TypeScript module exports."""
    exports = r"^export (?:async )?(?:function|class|const|interface|type) (\w+)"
    return set(re.findall(exports, source, re.MULTILINE))


@pytest.mark.parametrize(("path", "name"), [(path, name) for _, path, name in rows()])
def test_the_named_file_defines_the_named_thing(path: str, name: str):
    assert (ROOT / path).is_file(), f"{path} is not there"
    source = (ROOT / path).read_text()
    typescript = path.endswith(".ts")
    assert name in (exported_by(source) if typescript else defined_in(ast.parse(source).body))


def test_a_row_without_a_question_continues_the_row_above():
    assert rows()[0][0]


def test_no_question_is_asked_twice():
    section = (ROOT / "docs" / "architecture.md").read_text().split(SECTION)[1]
    questions = re.findall(r"^\| (Where [^|]+\?)", section, re.MULTILINE)
    assert len(questions) == len(set(questions)) >= 40
