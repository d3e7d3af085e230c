"""A function of AWS imports what it uses, before its first event, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

STORE = "socratic_bench.adapters.stores.dynamodb.store"
OTHER_PLATFORMS = {"aio_pika", "asyncpg", "boto3", "sqlalchemy", "uvicorn"}
PAGES = {"starlette", "prometheus_client"}
PLANS = {"yaml", "socratic_bench.planning.config_file.config"}
RECONCILING = "socratic_curator.reconciling.reconciler"

UNUSED = {
    "socratic_runner.entrypoints.lambda_function": PAGES | PLANS | {RECONCILING},
    "socratic_judge.entrypoints.lambda_function": PAGES | PLANS | {RECONCILING, STORE},
    "socratic_curator.entrypoints.lambda_function": PAGES | PLANS | {RECONCILING},
    "socratic_curator.entrypoints.scheduler_function": PAGES | PLANS,
    "socratic_api.entrypoints.lambda_function": PLANS | {RECONCILING},
}


@pytest.mark.parametrize("function", UNUSED)
def test_a_function_imports_its_store_and_nothing_that_it_does_not_use(function: str) -> None:
    code = f"import json, sys, {function}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert loaded & (UNUSED[function] | OTHER_PLATFORMS) == set()
    # What is imported at the first event is imported with a part of a processor (D-382).
    assert STORE in loaded | UNUSED[function]
