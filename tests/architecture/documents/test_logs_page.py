"""The page of the logs lists every event that the code logs, with its level and its files."""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "logs.md").read_text()
DISTRIBUTIONS = (
    "shared",
    "deploy/cli",
    *(f"services/{n}" for n in ("api", "curator", "judge", "runner")),
)
ROW = re.compile(r"^\| `([^`]+)` \| ([\w, ]+) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
ROUNDS = {"away": "warning", "back": "info"}
"""What a subclass of StoreRounds passes to it, with the level at which the base class logs it."""

Entry = tuple[str, str, str]
"""The text of an event, its level, and the file that logs it."""


def logged() -> set[Entry]:
    """Every event of the distributions."""
    return {
        entry
        for distribution in DISTRIBUTIONS
        for path in sources(distribution)
        for entry in logged_in(path, ROOT / distribution)
    }


def sources(distribution: str) -> list[Path]:
    return sorted((ROOT / distribution).rglob("*.py"))


def logged_in(path: Path, root: Path) -> Iterator[Entry]:
    file = str(path.relative_to(ROOT))
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log"), attr="log"), args=[_, event, *_]
            ):
                yield text(event, path, root), "varies", file
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log"), attr=level), args=[event, *_]
            ):
                if not isinstance(event, ast.Attribute) or ast.unparse(event.value) != "self":
                    yield text(event, path, root), level.replace("exception", "error"), file
            case ast.keyword(arg="away" | "back" as moment, value=ast.Constant(value=str(event))):
                yield event, ROUNDS[moment], file


def text(event: ast.expr, path: Path, root: Path) -> str:
    """The event's text: it is written there, or a constant has it."""
    if isinstance(event, ast.Constant):
        return str(event.value)
    value: object = importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
    for name in ast.unparse(event).split("."):
        value = getattr(value, name)
    assert isinstance(value, str)
    return value


def rows(entries: set[Entry]) -> set[Entry]:
    """One row for each event and level, with all files that log it."""
    files = defaultdict(list)
    for event, level, file in sorted(entries):
        files[event, level].append(f"`{file}`")
    return {(*key, ", ".join(listed)) for key, listed in files.items()}


def test_the_page_lists_every_event_that_is_logged_and_no_other():
    listed = ROW.findall(PAGE)
    assert set(listed) == rows(logged())
    assert len(listed) == len(set(listed))


def test_every_logger_is_named_log_so_that_the_page_misses_none():
    loggers = re.compile(r"^(.*)structlog\.get_logger\(", re.MULTILINE)
    begins = {
        begin
        for distribution in DISTRIBUTIONS
        for path in sources(distribution)
        for begin in loggers.findall(path.read_text())
    }
    assert begins == {"log = "}
