"""A new store and a new broker are cheap to write: two sketches keep the promises of their ports.

The suites in `tests/contract/store` and `tests/contract/broker` run whole over both.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ADAPTERS = "socratic_bench.adapters"
COMMON_HALVES = {
    f"{ADAPTERS}.brokers.{half}" for half in ("batches", "declarations", "receiving", "unacked")
}


def _text_of(sketch: str) -> str:
    return (HERE / sketch).read_text(encoding="utf-8")


@pytest.mark.parametrize(("sketch", "most"), [("store_sketch.py", 750), ("broker_sketch.py", 400)])
def test_a_whole_adapter_takes_few_lines(sketch: str, most: int) -> None:
    lines = _text_of(sketch).count("\n")
    assert lines <= most, (
        f"{sketch} has {lines} lines, {lines - most} more than an author should have to write: "
        "move a rule that every adapter repeats into the domain or the common halves, "
        "or ask for less in the port"
    )


@pytest.mark.parametrize(
    ("sketch", "allowed"), [("store_sketch.py", set()), ("broker_sketch.py", COMMON_HALVES)]
)
def test_an_author_needs_no_other_adapter(sketch: str, allowed: set[str]) -> None:
    nodes = list(ast.walk(ast.parse(_text_of(sketch))))
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    modules |= {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    taken = {module for module in modules if module.startswith((ADAPTERS, "tests"))}
    assert taken <= allowed
