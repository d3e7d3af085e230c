"""A service takes the roles of the store that it needs; only its wiring takes the whole store."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from socratic_bench.ports.stores.store import Store

ROOT = Path(__file__).parents[2]

WIRING = (
    "shared/socratic_bench/adapters",
    "shared/socratic_bench/addresses.py",
    "shared/socratic_bench/hosting",
    "deploy/cli/socratic_cli/embedded.py",
    "deploy/cli/socratic_cli/scoring_workers.py",
    "deploy/cli/socratic_cli/options/store.py",
    *(f"services/{name}/socratic_{name}/bootstrap.py" for name in ("runner", "curator", "api")),
    *(f"services/{name}/socratic_{name}/entrypoints" for name in ("runner", "curator", "api")),
)
"""Where a store is opened, prepared, closed, or handed to whoever takes a role of it."""

MODULES = [
    path.relative_to(ROOT)
    for root in ("shared", "services", "deploy/cli")
    for path in sorted((ROOT / root).rglob("*.py"))
    if not path.relative_to(ROOT).as_posix().startswith(WIRING)
]

CONTRACT = ROOT / "tests/contract/store"
ADAPTERS = ROOT / "shared/socratic_bench/adapters/stores"


def test_the_contract_of_the_store_calls_every_method_of_every_role():
    methods = {
        name
        for role in Store.__mro__
        for name, member in vars(role).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    called = {
        node.func.attr
        for path in CONTRACT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert len(methods) >= 40
    assert methods - called == set()


def test_no_adapter_scans_a_table_of_dynamodb():
    scans = [
        path.relative_to(ROOT).as_posix()
        for path in (ADAPTERS / "dynamodb").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in {"scan", "Scan"}
    ]
    assert scans == []


def test_no_signature_outside_the_wiring_takes_the_whole_store():
    whole = [
        f"{path}:{line}"
        for path in MODULES
        for line in signatures_with_store((ROOT / path).read_text())
    ]
    assert whole == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(store: Store): ...",
        "async def f(*, store: Store | None = None): ...",
        "class A:\n    def __init__(self, open: Callable[[Store], None]): ...",
        "class A:\n    store: 'Store'",
        "def f() -> AsyncIterator[Store]: ...",
    ],
)
def test_a_signature_that_takes_the_whole_store_is_found(source):
    assert list(signatures_with_store(source))


def signatures_with_store(source: str) -> Iterator[int]:
    """The lines of annotations of parameters, fields and results that name `Store`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.arg(annotation=ast.expr() as annotation):
                pass
            case ast.AnnAssign(annotation=annotation):
                pass
            case ast.FunctionDef(returns=ast.expr() as annotation):
                pass
            case ast.AsyncFunctionDef(returns=ast.expr() as annotation):
                pass
            case _:
                continue
        if any(_is_store(each) for each in ast.walk(annotation)):
            yield annotation.lineno


def _is_store(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="Store") | ast.Attribute(attr="Store") | ast.Constant(value="Store"):
            return True
    return False
