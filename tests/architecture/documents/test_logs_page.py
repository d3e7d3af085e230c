"""The page of the logs lists every event that the code logs, with its level, and no other."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| `([^`]+)` \| ([\w, ]+) \| [^|]+ \|$", re.MULTILINE)
SOURCES = [
    (path, path.relative_to(ROOT / distribution))
    for distribution in (
        "shared",
        "deploy/cli",
        *(f"services/{n}" for n in ("api", "curator", "judge", "runner")),
    )
    for path in sorted((ROOT / distribution).rglob("*.py"))
]
ROUNDS = {"away": "warning", "back": "info"}
"""What a subclass of StoreRounds passes to it, with the level at which the base class logs it."""


def logged_in(path: Path, module: Path) -> Iterator[tuple[str, str]]:
    """Each event that a module logs, with its level."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log"), attr="log"), args=[_, event, *_]
            ):
                yield text(event, module), "varies"
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log"), attr=level), args=[event, *_]
            ):
                if not isinstance(event, ast.Attribute) or ast.unparse(event.value) != "self":
                    yield text(event, module), level.replace("exception", "error")
            case ast.keyword(arg="away" | "back" as moment, value=ast.Constant(value=str(event))):
                yield event, ROUNDS[moment]


def text(event: ast.expr, module: Path) -> str:
    """The event's text: it is written there, or a constant has it."""
    if isinstance(event, ast.Constant):
        return str(event.value)
    value: object = importlib.import_module(".".join(module.with_suffix("").parts))
    for name in ast.unparse(event).split("."):
        value = getattr(value, name)
    return str(value)


def test_the_page_lists_every_event_that_is_logged_and_no_other():
    listed = ROW.findall((ROOT / "docs" / "logs.md").read_text())
    assert set(listed) == {entry for source in SOURCES for entry in logged_in(*source)}
    assert len(listed) == len(set(listed))


def test_every_logger_is_named_log_so_that_the_page_misses_none():
    loggers = re.compile(r"^(.*)structlog\.get_logger\(", re.MULTILINE)
    assert {begin for path, _ in SOURCES for begin in loggers.findall(path.read_text())} == {
        "log = "
    }
