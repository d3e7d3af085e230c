"""`python -m tests.architecture.documents.modules_page > docs/modules.md`: what each module is for.

The code has every sentence: the first one of a module's docstring, and the names beside it.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]

PACKAGES = (
    "shared/socratic_bench",
    "services/runner/socratic_runner",
    "services/judge/socratic_judge",
    "services/curator/socratic_curator",
    "services/api/socratic_api",
    "deploy/cli/socratic_cli",
    "deploy/aws/socratic_aws",
)

INTRODUCTION = """\
# Modules

Every Python module, what it is for, and its public names: for a search by a word. The
[questions](architecture.md#where-is-) lead to the places that people look for most.

`.venv/bin/python -m tests.architecture.documents.modules_page > docs/modules.md` writes this page
from the code; a test compares both.
"""


def page() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(map(_package, PACKAGES))


def _package(package: str) -> str:
    rows = "".join(
        f"| `{path.relative_to(REPOSITORY).as_posix()}` | {purpose} | {names} |\n"
        for path, purpose, names in modules(package)
    )
    return f"\n## {package}\n\n| module | purpose | names |\n|---|---|---|\n{rows}"


def modules(package: str) -> Iterator[tuple[Path, str, str]]:
    """Each module of a package: its file, its purpose and its public names."""
    for path in sorted((REPOSITORY / package).rglob("*.py")):
        if path.name == "__init__.py" or "migrations/versions" in path.as_posix():
            continue
        module = ast.parse(path.read_text())
        yield path, _first_sentence(ast.get_docstring(module) or ""), _public_names(module)


def _first_sentence(docstring: str) -> str:
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    return paragraph.replace("|", "\\|")


def _public_names(module: ast.Module) -> str:
    defined = (
        each.name
        for each in module.body
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return ", ".join(f"`{name}`" for name in defined if not name.startswith("_"))


if __name__ == "__main__":
    sys.stdout.write(page())
