"""Clients of models over HTTP, opened at a server's address and closed after the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from socratic_bench.domain.experiment.manifest import Limits, TutorModel
from socratic_bench.errors import ModelCallFailed
from socratic_bench.ports.models import ModelClient, Question
from socratic_bench.providers.base_urls import origin
from socratic_bench.providers.endpoints import ANYWHERE
from socratic_bench.testing.samples import a_question
from socratic_runner.models.registry import open_client

OpenModel = Callable[..., ModelClient]
Failing = Callable[..., Awaitable[ModelCallFailed]]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
async def open_model() -> AsyncIterator[OpenModel]:
    """Opens a model by its id and base URL, with a key, limits and options."""
    clients: list[ModelClient] = []

    def opened(
        model_id: str,
        base_url: str | None,
        *,
        limits: Limits | None = None,
        key_variable: str | None = None,
        **options: Any,
    ) -> ModelClient:
        model = TutorModel(
            id=model_id, base_url=base_url, options=options, limits=limits or Limits()
        )
        keys = [(key_variable, origin(base_url))] if key_variable and base_url else []
        endpoints = ANYWHERE.allowing(keys)
        clients.append(open_client(model, endpoints=endpoints, key_variable=key_variable))
        return clients[-1]

    yield opened
    for client in clients:
        await client.close()


async def failure_of(client: ModelClient, question: Question | None = None) -> ModelCallFailed:
    """The failure of a call."""
    with pytest.raises(ModelCallFailed) as failure:
        await client.ask(question or a_question())
    return failure.value
