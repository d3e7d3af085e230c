"""`python -m tests.architecture.house`: the weight of the product's Python, in figures.

Product is what users install or deploy: shared, services, deploy and examples. The modules that the
commands `run` and `leaderboard` load are those that imports at the heads of modules lead to.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ROOTS: Final = ("shared", "services/runner", "services/judge", "services/curator", "services/api")
COMMAND_ROOTS: Final = ("deploy/cli", "deploy/aws")
SMALL: Final = 60
"""A module of fewer lines is small."""

Module = tuple[str, ast.Module, int]
"""A module's dotted name, its syntax tree and its lines."""


def product() -> list[Path]:
    """Return the Python files of the product, from the root of the repository."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [Path(name) for name in names.split()]
    return sorted({path for path in paths if path.parts[0] != "tests" and (ROOT / path).exists()})


def modules(paths: list[Path]) -> dict[str, tuple[ast.Module, int]]:
    """Return each importable module of the product: its syntax tree, and its lines."""
    found = {}
    for path in paths:
        text = (ROOT / path).read_text(encoding="utf-8")
        for root in (*ROOTS, *COMMAND_ROOTS):
            if path.is_relative_to(root):
                name = ".".join(path.relative_to(root).with_suffix("").parts)
                found[name.removesuffix(".__init__")] = (ast.parse(text), text.count("\n"))
    return found


def imported(tree: ast.Module, names: set[str], *, at_head: bool = False) -> set[str]:
    """Return the product's modules that a module imports, anywhere or at its head alone."""
    found = set()
    for node in tree.body if at_head else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in names else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & names


def import_lines(tree: ast.Module) -> int:
    """Return the lines that imports take."""
    nodes = (n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def owners(trees: dict[str, ast.Module]) -> tuple[Counter[str], Counter[str], int, int]:
    """Count the modules that define each class and each constant; and constants, and …SECONDS."""
    classes: Counter[str] = Counter()
    constants: Counter[str] = Counter()
    every = seconds = 0
    for tree in trees.values():
        classes.update({node.name for node in tree.body if isinstance(node, ast.ClassDef)})
        here = set(_constants(tree))
        constants.update(here)
        every += len(here)
        seconds += sum(name.endswith("SECONDS") for name in here)
    return classes, constants, every, seconds


def _constants(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        yield from (t.id for t in targets if isinstance(t, ast.Name) and t.id.isupper())


def way(found: dict[str, tuple[ast.Module, int]], starts: tuple[str, ...]) -> set[str]:
    """Return the modules with code that the commands reach by imports at the heads of modules."""
    names, reached, waiting = set(found), set[str](), list(starts)
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting.extend(imported(found[name][0], names, at_head=True))
    return {name for name in reached if len(found[name][0].body) > 1}


def figures() -> dict[str, str]:
    """Return each figure by its name."""
    paths = product()
    found = modules(paths)
    trees = {name: tree for name, (tree, _) in found.items()}
    names = set(trees)
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for each in imported(tree, names):
            importers[each].add(name)
    lines = sum((ROOT / path).read_text(encoding="utf-8").count("\n") for path in paths)
    small = [name for name, (tree, n) in found.items() if n < SMALL and len(tree.body) > 1]
    alone = [name for name in names if len(importers[name]) == 1 and len(trees[name].body) > 1]
    classes, constants, every, seconds = owners(trees)
    shared = sorted(name for name, count in classes.items() if count > 1)
    run = way(found, ("socratic_cli.commands.run", "socratic_cli.commands.leaderboard"))
    return {
        "files": f"{len(paths):,}",
        "lines": f"{lines:,}",
        "import lines": f"{sum(map(import_lines, trees.values())) / lines:.1%}",
        f"modules under {SMALL} lines": str(len(small)),
        "modules that one other imports": str(len(alone)),
        "module constants; of them ...SECONDS": f"{every:,}; {seconds}",
        "constants with two owners": str(sum(count > 1 for count in constants.values())),
        "class names with two owners": f"{len(shared)}: {', '.join(shared)}",
        "modules that run and leaderboard load": str(len(run)),
    }


if __name__ == "__main__":
    for figure, value in figures().items():
        print(f"{figure:38} {value}")
