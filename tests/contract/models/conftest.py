"""One set of tests for every model client: another client is another entry here."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from socratic_bench.testing.client_contract import ClientUnderTest
from tests.contract.models.adapters import IN_PROCESS, LOCAL, ModelAdapter
from tests.contract.models.bedrock_adapter import BEDROCK
from tests.contract.models.http_adapter import HTTP

REAL = [pytest.mark.connected, pytest.mark.long, pytest.mark.xdist_group("a real model")]
ADAPTERS = [
    *(pytest.param(adapter, id=adapter.name) for adapter in IN_PROCESS),
    *(pytest.param(adapter, id=adapter.name, marks=REAL) for adapter in (*LOCAL, *HTTP, *BEDROCK)),
]


@pytest.fixture(params=ADAPTERS)
def adapter(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ModelAdapter:
    chosen: ModelAdapter = request.param
    chosen.prepare(tmp_path)
    for name, value in chosen.environment.items():
        monkeypatch.setenv(name, value)
    return chosen


@pytest.fixture
def under_test(adapter: ModelAdapter, tmp_path: Path) -> ClientUnderTest:
    return ClientUnderTest(partial(adapter.open, tmp_path), adapter.questions, adapter.many)
