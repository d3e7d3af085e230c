"""One set of tests for every model client: another client is another entry here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from socratic_bench.ports.models import ModelClient
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
async def client(adapter: ModelAdapter, tmp_path: Path) -> AsyncIterator[ModelClient]:
    client = adapter.open(tmp_path)
    yield client
    await client.close()
